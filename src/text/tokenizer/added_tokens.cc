// Leftmost-longest search over a trie.
#include "text/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {
namespace {

bool EndsWithWord(std::string_view text) {
  return !text.empty() && IsWord(CharAt(text, CharBefore(text, text.size())));
}
bool StartsWithWord(std::string_view text) { return !text.empty() && IsWord(CharAt(text, 0)); }

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens,
                         const std::function<std::string(const std::string&)>& normalize)
    : tokens_(std::move(tokens)) {
  std::vector<std::pair<std::string_view, int32_t>> entries[2];
  patterns_.reserve(tokens_.size());
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    patterns_.push_back(token.normalized ? normalize(token.content) : token.content);
    entries[token.normalized].emplace_back(patterns_[i], static_cast<int32_t>(i));
    by_id_[token.id] = i;
    by_content_[token.content] = i;
  }
  for (int kind = 0; kind < 2; ++kind) tries_[kind] = ByteTrie(entries[kind]);
}

std::vector<Segment> AddedTokens::Split(std::string_view text, bool normalized, bool parse_special) const {
  std::vector<Segment> out;
  const ByteTrie& trie = tries_[normalized];
  size_t done = 0;  // everything before it is in `out`
  if (!trie.empty()) {
    for (size_t at = 0; at < text.size();) {
      int32_t state = 0, found = ByteTrie::kNone;
      size_t stop = at;
      for (size_t i = at; i < text.size(); ++i) {
        state = trie.Step(state, static_cast<uint8_t>(text[i]));
        if (state == ByteTrie::kNone) break;
        if (trie.Value(state) == ByteTrie::kNone) continue;
        found = trie.Value(state);
        stop = i + 1;
      }
      if (found == ByteTrie::kNone) {
        ++at;
        continue;
      }
      size_t start = std::exchange(at, stop);
      const AddedToken& token = tokens_[static_cast<size_t>(found)];
      if (token.special && !parse_special) continue;
      if (token.single_word && (EndsWithWord(text.substr(0, start)) || StartsWithWord(text.substr(stop)))) continue;
      // Spaces that an earlier token took stay with it.
      if (token.lstrip) start = std::max(start, done);
      while (token.lstrip && start > done && IsWhitespace(CharAt(text, CharBefore(text, start))))
        start = CharBefore(text, start);
      while (token.rstrip && stop < text.size() && IsWhitespace(CharAt(text, stop))) stop += CharBytes(text[stop]);
      if (start > done) out.push_back({done, start, -1});
      out.push_back({start, stop, token.id});
      done = stop;
    }
  }
  if (done < text.size()) out.push_back({done, text.size(), -1});
  return out;
}

const AddedToken* AddedTokens::Find(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

std::string_view AddedTokens::DecodedText(const AddedToken& token) const {
  return patterns_[static_cast<size_t>(&token - tokens_.data())];
}

std::optional<int32_t> AddedTokens::Id(std::string_view content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? std::nullopt : std::optional(tokens_[found->second].id);
}

}  // namespace vllm::tokenizer
