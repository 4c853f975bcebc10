// Every decoder against Hugging Face's, and the bytes of single tokens.
#include "text/tokenizer/decoder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

TEST(Decoder, EveryKindEqualsTheReference) {
  const base::Json golden = Golden("components.json");
  const base::Json& tokens = golden["tokens"];
  for (const base::Json& entry : golden["decoders"]) {
    const tokenizer::Parts parts = PartsWith("decoder", entry[0]);
    for (size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_EQ(tokenizer::DecodeTokens(parts.decoders, tokens[i].get<std::vector<std::string>>()),
                entry[1][i].get<std::string>())
          << entry[0].dump() << " of " << tokens[i];
    }
  }
}

TEST(Decoder, BytesOfATokenMayBeHalfACharacter) {
  EXPECT_EQ(tokenizer::BytesOfToken(std::vector<tokenizer::Decoder>{tokenizer::ByteLevelDecoder{}}, "Ġð"), " \xF0");
  const std::vector<tokenizer::Decoder> sentence_piece = tokenizer::SentencePieceDecoders(true, true);
  EXPECT_EQ(tokenizer::BytesOfToken(sentence_piece, "<0xE7>"), "\xE7");
  EXPECT_EQ(tokenizer::BytesOfToken(sentence_piece, "▁the"), " the");
}

TEST(Decoder, CleanUpRemovesSpacesBeforePunctuation) {
  EXPECT_EQ(tokenizer::CleanUpSpaces("a , b . I 'm do n't"), "a, b. I'm don't");
}

}  // namespace
}  // namespace vllm
