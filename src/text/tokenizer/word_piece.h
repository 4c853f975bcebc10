// WordPiece (greedy longest match) and WordLevel (whole pieces only).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/vocab.h"

namespace vllm::tokenizer {

struct WordPieceOptions {
  int32_t unk = 0;
  std::string continuing_subword_prefix = "##";
  size_t max_chars_per_word = 100;  // a longer piece is unknown as a whole
};

class WordPiece {
 public:
  WordPiece(Vocab vocab, WordPieceOptions options) : vocab_(std::move(vocab)), options_(std::move(options)) {}
  struct Scratch {
    std::string text;
  };
  // Appends the tokens of one piece (valid UTF-8, not empty).
  void Tokenize(std::string_view piece, std::vector<int32_t>& out, Scratch& scratch) const;
  const Vocab& vocab() const { return vocab_; }

 private:
  Vocab vocab_;
  WordPieceOptions options_;
};

class WordLevel {
 public:
  WordLevel(Vocab vocab, int32_t unk) : vocab_(std::move(vocab)), unk_(unk) {}
  struct Scratch {};
  void Tokenize(std::string_view piece, std::vector<int32_t>& out, Scratch&) const {
    out.push_back(vocab_.Find(piece).value_or(unk_));
  }
  const Vocab& vocab() const { return vocab_; }

 private:
  Vocab vocab_;
  int32_t unk_;
};

}  // namespace vllm::tokenizer
