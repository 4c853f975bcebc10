// Every normalizer against Hugging Face's on texts of many scripts.
#include "text/tokenizer/normalizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

TEST(Normalizer, EveryKindEqualsTheReference) {
  const base::Json golden = Golden("components.json");
  const base::Json& texts = golden["texts"];
  for (const base::Json& entry : golden["normalizers"]) {
    const tokenizer::Parts parts = PartsWith("normalizer", entry[0]);
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(NormalizeAll(parts.normalizers, texts[i].get<std::string>(), true), entry[1][i].get<std::string>())
          << entry[0].dump().substr(0, 200) << " of " << texts[i];
    }
  }
}

TEST(Normalizer, SentencePieceRemovesExtraSpacesAndAddsItsPrefixToTheFirstSegmentOnly) {
  const tokenizer::Normalizer normalizer = tokenizer::SentencePieceNormalizer{nullptr, true, true, false};
  EXPECT_EQ(tokenizer::Normalize(normalizer, "  a   b ", true), "▁a▁b");
  EXPECT_EQ(tokenizer::Normalize(normalizer, "  a   b ", false), "a▁b");
  EXPECT_EQ(tokenizer::Normalize(normalizer, "   ", true), "");
}

TEST(Normalizer, SentencePieceKeepsSpacesWhenAskedAndCanPutItsPrefixLast) {
  EXPECT_EQ(tokenizer::Normalize(tokenizer::SentencePieceNormalizer{nullptr, true, false, false}, " a ", true), "▁▁a▁");
  EXPECT_EQ(tokenizer::Normalize(tokenizer::SentencePieceNormalizer{nullptr, true, false, true}, "a b", true), "a▁b▁");
}

}  // namespace
}  // namespace vllm
