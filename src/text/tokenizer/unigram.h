// Unigram language-model tokenization: the path of highest summed score, by Viterbi over a trie.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/tokenizer/byte_trie.h"
#include "text/tokenizer/vocab.h"

namespace vllm::tokenizer {

struct UnigramOptions {
  std::optional<int32_t> unk = {};  // without it a character that is not in the vocabulary is an error
  bool byte_fallback = false;
};

class Unigram {
 public:
  // `scores[id]` for every id. `usable[id]` false: the token is never produced from text; empty means that all are.
  Unigram(Vocab vocab, std::vector<double> scores, const std::vector<bool>& usable, UnigramOptions options);

  // Working memory of one caller.
  struct Scratch {
    struct Node {
      int32_t id = 0, begin = -1;
      double score = 0;
    };
    std::vector<Node> nodes;
    struct Step {
      size_t begin = 0, end = 0;
      int32_t id = 0;
    };
    std::vector<Step> steps;
  };
  // Appends the tokens of one piece (valid UTF-8, not empty). Throws base::Exception (kInvalidArgument) for an unknown
  // character when the vocabulary has no unknown token.
  void Tokenize(std::string_view piece, std::vector<int32_t>& out, Scratch& scratch) const;

  const Vocab& vocab() const { return vocab_; }

 private:
  void AppendUnknown(std::string_view text, std::vector<int32_t>& out) const;

  Vocab vocab_;
  std::vector<double> scores_;
  UnigramOptions options_;
  ByteTrie trie_;
  double unk_score_ = 0;
  std::vector<int32_t> bytes_;  // id of <0xXX> by byte, -1 if none
};

}  // namespace vllm::tokenizer
