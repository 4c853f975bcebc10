// Added tokens: strings that are found in text before the model sees it, each becoming one id.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer/byte_trie.h"

namespace vllm::tokenizer {

struct AddedToken {
  int32_t id = -1;
  std::string content = {};
  bool single_word = false;             // only where no word character touches it
  bool lstrip = false, rstrip = false;  // takes the white space on that side with it
  bool normalized = false;              // matched, itself normalized, against the normalized text
  bool special = false;                 // hidden by skip_special_tokens
};

// A stretch of text, or an added token found in it.
struct Segment {
  size_t begin = 0, end = 0;
  int32_t id = -1;  // -1: text
};

class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(AddedTokens&&) = default;
  AddedTokens& operator=(AddedTokens&&) = default;
  // `normalize` is applied to the content of normalized tokens.
  AddedTokens(std::vector<AddedToken> tokens, const std::function<std::string(const std::string&)>& normalize);

  // Cuts `text` at the tokens that are matched before (or, `normalized`, after) normalization; the longest of several
  // that start at one place. Special ones are left as text unless `parse_special`. Linear in the text times the longest
  // token.
  std::vector<Segment> Split(std::string_view text, bool normalized, bool parse_special) const;

  // The added token with that id, or null.
  const AddedToken* Find(int32_t id) const;
  // Its string for decoding: normalized if the token is.
  std::string_view DecodedText(const AddedToken& token) const;
  std::optional<int32_t> Id(std::string_view content) const;
  const std::vector<AddedToken>& tokens() const { return tokens_; }
  bool has_normalized() const { return !tries_[1].empty(); }

 private:
  std::vector<AddedToken> tokens_;
  std::vector<std::string> patterns_;  // what is matched, by index into tokens_
  ByteTrie tries_[2];                  // value: index into tokens_
  std::unordered_map<int32_t, size_t> by_id_;
  std::unordered_map<std::string_view, size_t> by_content_;  // views into tokens_
};

}  // namespace vllm::tokenizer
