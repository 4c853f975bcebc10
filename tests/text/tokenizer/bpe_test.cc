// Merging: short and long pieces by the same rules, unknown characters, derived merges.
#include "text/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <map>

#include "base/result.h"
#include "tests/text/tokenizer/corpus_util.h"

namespace vllm {
namespace {

using tokenizer::Bpe;
using tokenizer::BpeOptions;
using tokenizer::Merge;
using tokenizer::Vocab;

Vocab VocabOfTokens(const std::vector<std::string>& tokens) {
  Vocab vocab;
  for (size_t i = 0; i < tokens.size(); ++i) vocab.Add(tokens[i], static_cast<int32_t>(i));
  return vocab;
}

std::string Cut(const Bpe& bpe, std::string_view text) {
  std::vector<int32_t> ids;
  Bpe::Scratch scratch;
  bpe.Tokenize(text, ids, scratch);
  std::string out;
  for (const int32_t id : ids) out += (out.empty() ? "" : " ") + std::string(bpe.vocab().Text(id));
  return out;
}

// The definition: while a pair has a rank, the pair of least rank, leftmost first, is merged.
std::vector<int32_t> ByDefinition(std::vector<int32_t> ids, const std::vector<Merge>& merges) {
  std::map<std::pair<int32_t, int32_t>, Merge> table;
  for (const Merge& merge : merges) table[{merge.left, merge.right}] = merge;
  for (;;) {
    const Merge* best = nullptr;
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = table.find({ids[i], ids[i + 1]});
      if (found == table.end() || (best != nullptr && best->rank <= found->second.rank)) continue;
      best = &found->second;
      at = i;
    }
    if (best == nullptr) return ids;
    ids[at] = best->merged;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

TEST(Bpe, ShortAndLongPiecesFollowTheDefinition) {
  const std::vector<std::string> tokens = {"a", "b", "c", "ab", "bc", "abc", "aa", "aaaa", "abab", "ca", "cab", "bca"};
  const Vocab vocab = VocabOfTokens(tokens);
  const std::vector<Merge> merges = {{6, 6, 7, 3}, {0, 0, 6, 5}, {0, 1, 3, 2}, {1, 2, 4, 1},  {3, 2, 5, 0},
                                     {0, 4, 5, 6}, {3, 3, 8, 4}, {2, 0, 9, 7}, {2, 3, 10, 1}, {4, 0, 11, 8}};
  const Bpe bpe(vocab, merges, {});
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    std::vector<int32_t> symbols;
    for (uint64_t n = 1 + random.Next(120); n > 0; --n) {
      symbols.push_back(static_cast<int32_t>(random.Next(3)));
      text += tokens[static_cast<size_t>(symbols.back())];
    }
    std::vector<int32_t> ids;
    Bpe::Scratch scratch;
    bpe.Tokenize(text, ids, scratch);
    EXPECT_EQ(ids, ByDefinition(symbols, merges)) << text;
  }
}

TEST(Bpe, UnknownCharactersVanishOrBecomeOneTokenOrSeveral) {
  const Vocab vocab = VocabOfTokens({"?", "a"});
  EXPECT_EQ(Cut(Bpe(vocab, {}, {}), "axya"), "a a");
  EXPECT_EQ(Cut(Bpe(vocab, {}, {.unk = 0}), "axya"), "a ? ? a");
  EXPECT_EQ(Cut(Bpe(vocab, {}, {.unk = 0, .fuse_unk = true}), "axya"), "a ? a");
}

TEST(Bpe, ByteFallbackNeedsAllBytesOfACharacter) {
  const Vocab vocab = VocabOfTokens({"?", "<0xC3>", "<0xA9>"});
  EXPECT_EQ(Cut(Bpe(vocab, {}, {.unk = 0, .byte_fallback = true}), "éê"), "<0xC3> <0xA9> ?");
}

TEST(Bpe, NeedingAMissingUnknownTokenIsAnError) {
  const Bpe bpe(VocabOfTokens({"a"}), {}, {.missing_unk = "[U]"});
  EXPECT_EQ(Cut(bpe, "aa"), "a a");
  EXPECT_THROW(Cut(bpe, "ab"), base::Exception);
}

TEST(Bpe, IgnoringMergesTakesWholePieces) {
  const Vocab vocab = VocabOfTokens({"a", "b", "ab"});
  EXPECT_EQ(Cut(Bpe(vocab, {}, {.ignore_merges = true}), "ab"), "ab");
  EXPECT_EQ(Cut(Bpe(vocab, {}, {}), "ab"), "a b");
}

TEST(Bpe, AMillionEqualLettersAreMergedInNearLinearTime) {
  std::vector<std::string> tokens = {"a"};
  std::vector<Merge> merges;
  for (int32_t i = 0; i < 8; ++i) {
    merges.push_back({i, i, i + 1, static_cast<uint32_t>(i)});
    tokens.push_back(tokens.back() + tokens.back());
  }
  const Bpe bpe(VocabOfTokens(tokens), merges, {});
  std::vector<int32_t> ids;
  Bpe::Scratch scratch;
  bpe.Tokenize(std::string(1 << 20, 'a'), ids, scratch);
  EXPECT_EQ(ids, std::vector<int32_t>(4096, 8));
}

TEST(Bpe, DerivedMergesPutHigherScoresAndLongerLeftPartsFirst) {
  const Vocab vocab = VocabOfTokens({"a", "b", "ab", "bb", "abb"});
  const std::vector<Merge> merges = tokenizer::DeriveMerges(vocab, {0, 1, 2, 3, 4}, {0, 0, -3, -2, -1}, false);
  ASSERT_EQ(merges.size(), 4u);
  EXPECT_EQ(merges[0].left, 2);  // ab b
  EXPECT_EQ(merges[1].left, 0);  // a bb
  EXPECT_EQ(merges[2].merged, 3);
  EXPECT_EQ(merges[3].merged, 2);
  EXPECT_EQ(merges[3].rank, 3u);
}

TEST(Bpe, DerivedMergesOfOneScoreMayShareARank) {
  const Vocab vocab = VocabOfTokens({"a", "b", "ab", "bb", "abb"});
  const std::vector<Merge> merges = tokenizer::DeriveMerges(vocab, {2, 3, 4}, {0, 0, -2, -2, -1}, true);
  ASSERT_EQ(merges.size(), 4u);
  EXPECT_EQ(merges[0].rank, merges[1].rank);
  EXPECT_EQ(merges[2].rank, merges[3].rank);
  EXPECT_LT(merges[0].rank, merges[2].rank);
}

}  // namespace
}  // namespace vllm
