// Walking of UTF-8 and character properties.
#include "text/tokenizer/unicode.h"

#include <gtest/gtest.h>

#include <set>

namespace vllm {
namespace {

TEST(Unicode, CharactersOfEveryLengthSurviveTheRoundTrip) {
  for (const char32_t c : {U'a', U'é', U'漢', U'🦙', char32_t{0x10FFFF}, char32_t{0}}) {
    std::string text = "x";
    tokenizer::AppendChar(text, c);
    EXPECT_EQ(tokenizer::CharAt(text, 1), c);
    EXPECT_EQ(tokenizer::CharBytes(text[1]), text.size() - 1);
    EXPECT_EQ(tokenizer::CharBefore(text, text.size()), 1u);
  }
}

TEST(Unicode, TheByteAlphabetIsOneToOne) {
  std::set<std::string_view> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string_view spelling = tokenizer::ByteSpelling(static_cast<uint8_t>(byte));
    EXPECT_TRUE(seen.insert(spelling).second);
    EXPECT_EQ(tokenizer::SpelledByte(tokenizer::CharAt(spelling, 0)), byte);
  }
  EXPECT_EQ(tokenizer::ByteSpelling(' '), "Ġ");
  std::string out = "kept";
  EXPECT_FALSE(tokenizer::AppendSpelledBytes(out, "Ġ漢"));
  EXPECT_EQ(out, "kept");
}

TEST(Unicode, WhitespaceIsWhiteSpaceAndNothingElse) {
  for (const char32_t c : {U' ', U'\t', char32_t{0x85}, char32_t{0xA0}, char32_t{0x3000}})
    EXPECT_TRUE(tokenizer::IsWhitespace(c));
  for (const char32_t c : {char32_t{0x180E}, char32_t{0x200B}, char32_t{0xFEFF}, U'a'})
    EXPECT_FALSE(tokenizer::IsWhitespace(c));
}

TEST(Unicode, WordCharactersAreLettersMarksDigitsAndConnectors) {
  for (const char32_t c : {U'a', U'_', U'9', char32_t{0x301}, char32_t{0x24B6}, U'漢', U'Ⅷ', char32_t{0x203F}})
    EXPECT_TRUE(tokenizer::IsWord(c));
  for (const char32_t c : {U' ', U'-', U'½', U'€', U'🦙'}) EXPECT_FALSE(tokenizer::IsWord(c));
}

TEST(Unicode, MessagesShowOutsideTextOnOneLine) {
  EXPECT_EQ(tokenizer::Shown("a\n\xFF\x1b"), "a\\x0a\xEF\xBF\xBD\\x1b");
  EXPECT_LT(tokenizer::Shown(std::string(1000, 'x')).size(), 100u);
}

}  // namespace
}  // namespace vllm
