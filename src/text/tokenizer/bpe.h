// Byte-pair encoding: merges by rank in near-linear time, whatever the length of a piece.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/vocab.h"

namespace vllm::tokenizer {

struct BpeOptions {
  std::optional<int32_t> unk = {};  // id for characters that are not in the vocabulary; without it they vanish
  std::string missing_unk = {};     // the unknown token's name when the vocabulary lacks it: needing it is an error
  bool fuse_unk = false;            // a run of unknown characters is one token
  bool byte_fallback = false;       // unknown characters become <0xXX> tokens if the vocabulary has them
  bool ignore_merges = false;       // a piece that is a token is that token, whatever the merges say
  std::string continuing_subword_prefix = {}, end_of_word_suffix = {};
};

// Two neighbours that become `merged`; of two pairs that apply the lower rank goes first, of equal ranks the one
// further left.
struct Merge {
  int32_t left = 0, right = 0, merged = 0;
  uint32_t rank = 0;
};

// The merges that a vocabulary implies: every token that is two others joined. Those of a token with a higher score
// come first
// (`scores` by id), then those with the longer left part, then those with the longer right part. With `one_rank` the
// merges of all tokens of one score share a rank, which is SentencePiece's own rule.
std::vector<Merge> DeriveMerges(const Vocab& vocab, std::vector<int32_t> ids, const std::vector<double>& scores,
                                bool one_rank);

class Bpe {
 public:
  Bpe(Vocab vocab, const std::vector<Merge>& merges, BpeOptions options);

  // Working memory of one caller.
  struct Scratch {
    std::vector<int32_t> ids, next, previous;
    std::vector<uint32_t> ranks;
    std::vector<uint64_t> heap;
    std::string text;
  };
  // Appends the tokens of one piece (valid UTF-8, not empty). Throws base::Exception (kInvalidArgument) for an unknown
  // character when the unknown token is missing.
  void Tokenize(std::string_view piece, std::vector<int32_t>& out, Scratch& scratch) const;

  const Vocab& vocab() const { return vocab_; }

 private:
  static constexpr uint32_t kNoRank = UINT32_MAX;
  struct PairSlot {
    uint64_t pair = UINT64_MAX;
    uint32_t rank = kNoRank;
    int32_t merged = 0;
  };
  const PairSlot* FindPair(int32_t left, int32_t right) const;
  uint32_t RankOf(int32_t left, int32_t right) const {
    const PairSlot* slot = FindPair(left, right);
    return slot == nullptr ? kNoRank : slot->rank;
  }
  void AddSymbols(std::string_view piece, Scratch& scratch) const;
  std::optional<int32_t> Symbol(std::string_view character) const;
  bool AddBytes(std::string_view text, Scratch& scratch) const;
  void MergeShort(Scratch& scratch) const;
  void MergeLong(std::vector<int32_t>& out, Scratch& scratch) const;

  Vocab vocab_;
  BpeOptions options_;
  std::vector<PairSlot> pairs_;
  std::vector<int32_t> bmp_;    // id by code point below U+10000, -1 if none
  std::vector<int32_t> bytes_;  // id of <0xXX> by byte, -1 if none
};

}  // namespace vllm::tokenizer
