// Stop strings are searched in bytes: UTF-8 keeps matches on character boundaries. Hold-back counts characters, as vLLM
// does.
#include "engine/out/sequence_text.h"

#include <algorithm>

namespace vllm {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuation(c); }));
}

// Offset in bytes of the start of the last `characters` characters.
size_t OffsetFromEnd(std::string_view text, size_t characters) {
  size_t at = text.size();
  while (characters > 0 && at > 0) {
    --at;
    if (!IsContinuation(text[at])) --characters;
  }
  return at;
}

}  // namespace

SequenceText::SequenceText(const Tokenizer& tokenizer, const SamplingParams& params,
                           std::span<const int32_t> prompt_ids)
    : params_(params) {
  if (params.detokenize) {
    stream_.emplace(tokenizer, DecodeOptions{params.skip_special_tokens, params.spaces_between_special_tokens},
                    prompt_ids);
  }
  for (const std::string& stop : params.stop) {
    longest_stop_bytes_ = std::max(longest_stop_bytes_, stop.size());
    if (!params.include_stop_str_in_output) held_characters_ = std::max(held_characters_, CountCharacters(stop) - 1);
  }
}

SequenceText::Update SequenceText::Add(std::span<const int32_t> new_token_ids, bool stopped_by_token) {
  const int64_t num_before = num_tokens_;
  num_tokens_ += static_cast<int64_t>(new_token_ids.size());
  if (!stream_ || new_token_ids.empty()) return {new_token_ids.size(), {}};
  // What the next searches may still reach back into, plus what has not been taken.
  const size_t keep_from = std::min(taken_, text_.size() - std::min(text_.size(), longest_stop_bytes_));
  text_.erase(0, keep_from);
  taken_ -= keep_from;

  const bool may_stop = !params_.stop.empty();
  std::vector<size_t> ends;  // of the text at each token boundary; only stop strings need them
  if (may_stop) ends.push_back(text_.size());
  for (size_t i = 0; i < new_token_ids.size(); ++i) {
    const bool silent = stopped_by_token && !params_.include_stop_str_in_output && i + 1 == new_token_ids.size();
    if (!silent) text_ += stream_->Push(new_token_ids[i]);
    if (may_stop) ends.push_back(text_.size());
  }
  Update update = {new_token_ids.size(), {}};
  if (!may_stop || num_tokens_ <= params_.min_tokens) return update;
  const size_t checked_from = ends[static_cast<size_t>(std::max<int64_t>(params_.min_tokens - num_before, 0))];
  const auto found = FindStop(checked_from);
  if (!found) return update;
  const size_t stop_end = found->second;
  const auto kept = std::lower_bound(ends.begin() + 1, ends.end(), stop_end);
  update.kept_tokens = std::min<size_t>(kept - ends.begin(), new_token_ids.size());
  update.stop_string = found->first;
  num_tokens_ = num_before + static_cast<int64_t>(update.kept_tokens);
  text_.resize(params_.include_stop_str_in_output ? stop_end : stop_end - found->first.size());
  return update;
}

std::optional<std::pair<std::string, size_t>> SequenceText::FindStop(size_t checked_from) const {
  if (checked_from >= text_.size()) return {};
  std::optional<std::pair<std::string, size_t>> first;
  for (const std::string& stop : params_.stop) {
    // A match must end in the new text.
    const size_t from = checked_from + 1 > stop.size() ? checked_from + 1 - stop.size() : 0;
    const size_t at = text_.find(stop, from);
    if (at == text_.npos) continue;
    if (!first || at + stop.size() < first->second) first.emplace(stop, at + stop.size());
  }
  return first;
}

std::string SequenceText::TakeText(bool finished) {
  const size_t end = finished ? text_.size() : OffsetFromEnd(text_, held_characters_);
  if (end <= taken_) return {};
  std::string out = text_.substr(taken_, end - taken_);
  taken_ = end;
  return out;
}

}  // namespace vllm
