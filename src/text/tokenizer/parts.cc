// Added tokens get their ids here.
#include "text/tokenizer/parts.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/result.h"
#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {

int32_t AddedTokenList::Add(AddedToken token) {
  if (token.content.empty()) return -1;
  const auto known = index_.find(token.content);
  if (known != index_.end()) {
    token.id = tokens_[known->second].id;
    tokens_[known->second] = std::move(token);
    return tokens_[known->second].id;
  }
  if (const auto id = vocab_.Find(token.content)) {
    token.id = *id;
  } else {
    token.id = std::max(max_id_ + 1, static_cast<int32_t>(vocab_.size()));
  }
  if (token.id > base::kMaxTokenId) {
    base::Throw(base::ErrorCode::kBadFile, "added token '", Shown(token.content), "' would get id ", token.id,
                " (limit ", base::kMaxTokenId, ")");
  }
  max_id_ = std::max(max_id_, token.id);
  index_[token.content] = tokens_.size();
  tokens_.push_back(std::move(token));
  return tokens_.back().id;
}

AddedTokens AddedTokenList::Build(const std::vector<Normalizer>& normalizers) && {
  return AddedTokens(std::move(tokens_),
                     [&](const std::string& content) { return NormalizeAll(normalizers, content, true); });
}

std::string NormalizeAll(const std::vector<Normalizer>& normalizers, std::string text, bool first) {
  for (const Normalizer& normalizer : normalizers) text = Normalize(normalizer, std::move(text), first);
  return text;
}

}  // namespace vllm::tokenizer
