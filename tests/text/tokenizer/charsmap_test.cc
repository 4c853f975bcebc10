// The precompiled character map of the SentencePiece model made by tools/golden/tokenizer.py, and damaged ones.
#include "text/tokenizer/charsmap.h"

#include <gtest/gtest.h>

#include <variant>

#include "base/result.h"
#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

using tokenizer::Charsmap;

TEST(Charsmap, MapsTheLongestEntry) {
  const tokenizer::Parts parts =
      tokenizer::ReadSentencePiece(ReadFile(GoldenPath("unigram.model")), "unigram.model", {});
  const auto& map = *std::get<tokenizer::SentencePieceNormalizer>(parts.normalizers.at(0)).map;
  EXPECT_EQ(map.Longest("ﬁnd")->replacement, "fi");
  EXPECT_EQ(map.Longest("e\xCC\x81x")->replacement, "é");
  EXPECT_EQ(map.Longest("e\xCC\x81x")->bytes, 3u);
  EXPECT_EQ(map.Longest("\xE2\x80\x8B")->replacement, "");
  EXPECT_FALSE(map.Longest("x").has_value());
  EXPECT_FALSE(map.Longest("").has_value());
}

TEST(Charsmap, SizesThatDoNotFitAreRefused) {
  for (const std::string_view blob :
       {std::string_view(""), std::string_view("\x04\0\0", 3), std::string_view("\x08\0\0\0abcd", 8),
        std::string_view("\0\0\0\0", 4), std::string_view("\x03\0\0\0abc", 7)}) {
    EXPECT_THROW(Charsmap{blob}, base::Exception);
  }
}

TEST(Charsmap, AnyUnitsAreWalkedWithinTheirBounds) {
  Random random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string blob("\x40\0\0\0", 4);
    for (int i = 0; i < 64; ++i) blob += static_cast<char>(random.Next(256));
    blob += "abc";
    const Charsmap map(blob);
    std::string text;
    for (int i = 0; i < 16; ++i) text += static_cast<char>(random.Next(128));
    const auto match = map.Longest(text);
    EXPECT_LE(match ? match->replacement.size() : 0, 3u);
  }
}

}  // namespace
}  // namespace vllm
