// A window of the last emitted tokens and those held back is decoded anew for each token.
#include "text/tokenizer/detokenize_stream.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "text/tokenizer/unicode.h"

namespace vllm {
namespace {

// Prompt tokens of context: what decoders do to a token depends on its neighbours only.
constexpr size_t kContextTokens = 16;

// Bytes at the end of `bytes` that begin a character and do not finish it.
size_t IncompleteBytes(std::string_view bytes) {
  for (size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const auto byte = static_cast<uint8_t>(bytes[bytes.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t size = byte >= 0xC2 && byte <= 0xF4 ? tokenizer::CharBytes(static_cast<char>(byte)) : 1;
    return size > back ? back : 0;
  }
  return 0;
}

}  // namespace

DetokenizeStream::DetokenizeStream(const Tokenizer& tokenizer, DecodeOptions options,
                                   std::span<const int32_t> prompt_ids)
    : tokenizer_(tokenizer), options_(options) {
  for (size_t i = prompt_ids.size(); i-- > 0;) {
    const int32_t id = prompt_ids[i];
    if (!tokenizer.Exists(id) || (options.skip_special_tokens && tokenizer.IsSpecial(id))) continue;
    ids_.push_back(id);
    if (ids_.size() < kContextTokens) continue;
    // The window must not begin inside a character, nor inside a run of single bytes, which are judged as a whole.
    const std::string bytes = tokenizer.TokenBytes(id);
    if (ids_.size() >= 2 * base::kMaxHeldTokens || (!bytes.empty() && static_cast<uint8_t>(bytes[0]) < 0x80)) break;
  }
  std::reverse(ids_.begin(), ids_.end());
  emitted_ = ids_.size() - IncompleteTokens();
  prefix_ = Text(std::span(ids_).first(emitted_));
}

std::string DetokenizeStream::Text(std::span<const int32_t> ids) const {
  return tokenizer_.Decode(ids, {.skip_special_tokens = false, .clean_up_spaces = false});
}

// How many of the last tokens hold the beginning of an unfinished character.
size_t DetokenizeStream::IncompleteTokens() const {
  std::string bytes;
  for (size_t count = 1; count <= 4 && count <= ids_.size(); ++count) {
    bytes.insert(0, tokenizer_.TokenBytes(ids_[ids_.size() - count]));
    if (bytes.size() < 4 && count < ids_.size()) continue;
    break;
  }
  const size_t incomplete = IncompleteBytes(bytes);
  size_t tokens = 0;
  for (size_t covered = 0; covered < incomplete; ++tokens)
    covered += tokenizer_.TokenBytes(ids_[ids_.size() - 1 - tokens]).size();
  return tokens;
}

std::string DetokenizeStream::Push(int32_t id) {
  std::string text = Step(id);
  if (options_.skip_special_tokens || options_.spaces_between_special_tokens) return text;
  const bool added = tokenizer_.IsAdded(id);
  if (added && last_added_) text = tokenizer_.TokenText(id);
  last_added_ = added;
  return text;
}

std::string DetokenizeStream::Step(int32_t id) {
  if (tokenizer_.DecodesByBytes() && ids_.size() == emitted_ && (ids_.empty() || !prefix_.empty())) {
    // Nothing is held back: a token of whole characters adds them, whatever comes before.
    std::string alone =
        tokenizer_.Decode({&id, 1}, {.skip_special_tokens = options_.skip_special_tokens, .clean_up_spaces = false});
    if (!alone.empty() && alone.find(tokenizer::kReplacement) == std::string::npos) {
      ids_.assign(1, id);
      emitted_ = 1;
      prefix_ = alone;
      return alone;
    }
  }
  if (!tokenizer_.Exists(id) || (options_.skip_special_tokens && tokenizer_.IsSpecial(id))) return "";
  if (prefix_.empty() && !ids_.empty()) {
    std::string text = Text(ids_);
    if (!text.ends_with(tokenizer::kReplacement)) {
      prefix_ = std::move(text);
      emitted_ = ids_.size();
    }
  }
  ids_.push_back(id);
  std::string text = Text(ids_);
  const bool complete = text.size() > prefix_.size() && !text.ends_with(tokenizer::kReplacement);
  if (!complete) return ids_.size() - emitted_ > base::kMaxHeldTokens ? Flush(IncompleteTokens()) : "";
  if (!text.starts_with(prefix_)) {
    // Bytes that formed a character became invalid by what followed them: begin anew with this token.
    ids_ = {id};
    emitted_ = 0;
    prefix_.clear();
    text = Text(ids_);
    if (text.empty() || text.ends_with(tokenizer::kReplacement)) return "";
  }
  std::string out = text.substr(prefix_.size());
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<ptrdiff_t>(emitted_));
  emitted_ = ids_.size();
  prefix_ = Text(ids_);
  return out;
}

// Emits all but the last `keep` tokens as they are; the last emitted one stays as context.
std::string DetokenizeStream::Flush(size_t keep) {
  const size_t done = ids_.size() - keep;
  const std::string text = Text(std::span(ids_).first(done));
  std::string out = text.starts_with(prefix_) ? text.substr(prefix_.size())
                                              : Text(std::span(ids_).subspan(emitted_, done - emitted_));
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<ptrdiff_t>(done == 0 ? 0 : done - 1));
  emitted_ = done == 0 ? 0 : 1;
  prefix_ = Text(std::span(ids_).first(emitted_));
  return out;
}

std::string DetokenizeStream::Finish() { return ids_.size() > emitted_ ? Flush(0) : ""; }

}  // namespace vllm
