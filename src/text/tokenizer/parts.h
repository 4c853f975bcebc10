// What a tokenizer is made of; the loaders fill it, Tokenizer runs it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/unigram.h"
#include "text/tokenizer/word_piece.h"

namespace vllm::tokenizer {

using Model = std::variant<Bpe, Unigram, WordPiece, WordLevel>;

struct Parts {
  std::vector<Normalizer> normalizers = {};
  Model model;
  std::vector<PreTokenizer> pre_tokenizers = {};
  std::vector<Decoder> decoders = {};
  AddedTokens added = {};
  std::vector<int32_t> prefix = {}, suffix = {};           // around every text with add_special_tokens
  std::map<std::string, std::string> special_tokens = {};  // bos_token, eos_token, …: their strings
  std::optional<int32_t> eot = {};
  std::map<std::string, std::string> chat_templates = {};  // by name; "default" is the usual one
  size_t max_token_chars = 0;
  bool clean_up_spaces = false;  // Decode removes spaces before punctuation
};

inline const Vocab& VocabOf(const Model& model) {
  return std::visit([](const auto& m) -> const Vocab& { return m.vocab(); }, model);
}

// Collects added tokens and gives ids to those that the vocabulary lacks, as the reference implementation does.
class AddedTokenList {
 public:
  explicit AddedTokenList(const Vocab& vocab) : vocab_(vocab) {}
  // Sets `token.id` and returns it. A token of the same content replaces the earlier one. An empty content is ignored:
  // -1. Throws base::Exception (kBadFile) when the ids run out.
  int32_t Add(AddedToken token);
  bool Has(const std::string& content) const { return index_.contains(content); }
  // The finished set; normalized tokens are matched in the form that `normalizers` give them.
  AddedTokens Build(const std::vector<Normalizer>& normalizers) &&;

 private:
  const Vocab& vocab_;
  std::vector<AddedToken> tokens_;
  std::map<std::string, size_t> index_;
  int32_t max_id_ = -1;
};

// Runs all normalizers in order.
std::string NormalizeAll(const std::vector<Normalizer>& normalizers, std::string text, bool first);

}  // namespace vllm::tokenizer
