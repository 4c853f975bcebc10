// Best paths and unknown characters.
#include "text/tokenizer/unigram.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace vllm {
namespace {

using tokenizer::Unigram;

std::string Cut(const Unigram& unigram, std::string_view text) {
  std::vector<int32_t> ids;
  Unigram::Scratch scratch;
  unigram.Tokenize(text, ids, scratch);
  std::string out;
  for (const int32_t id : ids) out += (out.empty() ? "" : " ") + std::string(unigram.vocab().Text(id));
  return out;
}

Unigram Make(const std::vector<std::pair<std::string, double>>& tokens, tokenizer::UnigramOptions options) {
  tokenizer::Vocab vocab;
  std::vector<double> scores;
  for (const auto& [text, score] : tokens) {
    vocab.Add(text, static_cast<int32_t>(scores.size()));
    scores.push_back(score);
  }
  return Unigram(std::move(vocab), std::move(scores), {}, options);
}

TEST(Unigram, TheHighestSumWins) {
  const Unigram unigram = Make(
      {{"?", 0}, {"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}, {"cd", 1}, {"ab", 2}, {"abc", 5}, {"abcd", 10}}, {.unk = 0});
  EXPECT_EQ(Cut(unigram, "abcdacd"), "abcd a cd");
}

TEST(Unigram, ARunOfUnknownCharactersIsOneToken) {
  EXPECT_EQ(Cut(Make({{"?", 0}, {"a", 0}}, {.unk = 0}), "axya🦙"), "a ? a ?");
}

TEST(Unigram, UnknownCharactersBecomeBytes) {
  EXPECT_EQ(Cut(Make({{"?", 0}, {"a", 0}, {"<0xC3>", 0}, {"<0xA9>", 0}}, {.unk = 0, .byte_fallback = true}), "aéx"),
            "a ?");
  EXPECT_EQ(Cut(Make({{"?", 0}, {"a", 0}, {"<0xC3>", 0}, {"<0xA9>", 0}}, {.unk = 0, .byte_fallback = true}), "aéa"),
            "a <0xC3> <0xA9> a");
}

TEST(Unigram, AnUnknownCharacterWithoutUnknownTokenIsAnError) {
  const Unigram unigram = Make({{"a", 0}}, {});
  EXPECT_EQ(Cut(unigram, "aa"), "a a");
  EXPECT_THROW(Cut(unigram, "ab"), base::Exception);
}

TEST(Unigram, TokensThatAreNotUsableAreNotProduced) {
  tokenizer::Vocab vocab;
  vocab.Add("a", 0);
  vocab.Add("aa", 1);
  EXPECT_EQ(Cut(Unigram(vocab, {-1, 5}, {true, false}, {}), "aa"), "a a");
}

}  // namespace
}  // namespace vllm
