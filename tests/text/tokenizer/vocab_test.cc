// Look-ups both ways.
#include "text/tokenizer/vocab.h"

#include <gtest/gtest.h>

namespace vllm {
namespace {

using tokenizer::Vocab;

TEST(Vocab, FindsTokensBothWays) {
  Vocab vocab;
  for (int32_t id = 0; id < 5000; ++id) vocab.Add("t" + std::to_string(id), id);
  EXPECT_EQ(vocab.size(), 5000u);
  for (int32_t id = 0; id < 5000; ++id) {
    EXPECT_EQ(vocab.Find("t" + std::to_string(id)), id);
    EXPECT_EQ(vocab.Text(id), "t" + std::to_string(id));
  }
  EXPECT_EQ(vocab.Find("t5000"), std::nullopt);
  EXPECT_EQ(vocab.Text(5000), "");
  EXPECT_FALSE(vocab.Has(-1));
}

TEST(Vocab, ATokenGivenTwiceHasItsLastId) {
  Vocab vocab;
  vocab.Add("a", 1);
  vocab.Add("a", 7);
  EXPECT_EQ(vocab.Find("a"), 7);
  EXPECT_EQ(vocab.size(), 1u);
  EXPECT_EQ(vocab.Text(1), "a");
  EXPECT_EQ(vocab.id_end(), 8);
  EXPECT_FALSE(vocab.Has(3));
}

TEST(Vocab, HashesOfPrefixAndSuffixFollowFromOnePass) {
  const std::string text = "tokenizer";
  uint64_t power = 1;
  for (size_t i = 0; i < 5; ++i) power *= Vocab::kBase;
  EXPECT_EQ(Vocab::Hash(text) - Vocab::Hash("toke") * power, Vocab::Hash("nizer"));
}

}  // namespace
}  // namespace vllm
