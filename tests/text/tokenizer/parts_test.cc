// Ids of added tokens.
#include "text/tokenizer/parts.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "base/result.h"

namespace vllm {
namespace {

using tokenizer::AddedTokenList;

TEST(Parts, AddedTokensTakeTheVocabularysIdOrTheNextFreeOne) {
  tokenizer::Vocab vocab;
  vocab.Add("a", 0);
  vocab.Add("b", 9);
  AddedTokenList list(vocab);
  EXPECT_EQ(list.Add({.content = "a"}), 0);
  EXPECT_EQ(list.Add({.content = "x"}), 2);
  EXPECT_EQ(list.Add({.content = "b"}), 9);
  EXPECT_EQ(list.Add({.content = "y"}), 10);
  EXPECT_EQ(list.Add({.content = "x", .special = true}), 2);
  EXPECT_EQ(list.Add({.content = ""}), -1);
  const tokenizer::AddedTokens tokens = std::move(list).Build({});
  EXPECT_EQ(tokens.tokens().size(), 4u);
  EXPECT_TRUE(tokens.Find(2)->special);
}

TEST(Parts, IdsDoNotGrowWithoutLimit) {
  tokenizer::Vocab vocab;
  vocab.Add("a", static_cast<int32_t>(base::kMaxTokenId));
  AddedTokenList list(vocab);
  list.Add({.content = "a"});
  EXPECT_THROW(list.Add({.content = "b"}), base::Exception);
}

TEST(Parts, NormalizedTokensAreMatchedInTheirNormalForm) {
  tokenizer::Vocab vocab;
  AddedTokenList list(vocab);
  list.Add({.content = "Ab", .normalized = true});
  const tokenizer::AddedTokens tokens = std::move(list).Build({tokenizer::Lowercase{}});
  EXPECT_EQ(tokens.Split("xab", true, true).size(), 2u);
  EXPECT_EQ(tokens.Split("xAb", false, true).size(), 1u);
  EXPECT_EQ(tokens.DecodedText(*tokens.Find(0)), "ab");
}

}  // namespace
}  // namespace vllm
