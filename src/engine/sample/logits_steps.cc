// The order is vLLM's: bias before penalties (they do not commute), bad words last.
#include "engine/sample/logits_steps.h"

#include <algorithm>
#include <limits>

namespace vllm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

bool Inside(std::span<const float> logits, int32_t id) { return id >= 0 && static_cast<size_t>(id) < logits.size(); }

bool MasksStopTokens(const SampleRow& row) {
  return static_cast<int64_t>(row.output_ids.size()) < row.params->min_tokens &&
         !row.params->all_stop_token_ids.empty();
}

bool UsesPenalties(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.frequency_penalty != 0 || params.presence_penalty != 0;
}

void KeepOnly(std::span<float> logits, std::span<const int32_t> allowed) {
  std::vector<float> saved(allowed.size());
  for (size_t i = 0; i < allowed.size(); ++i) saved[i] = Inside(logits, allowed[i]) ? logits[allowed[i]] : 0;
  std::fill(logits.begin(), logits.end(), -kInf);
  for (size_t i = 0; i < allowed.size(); ++i) {
    if (Inside(logits, allowed[i])) logits[allowed[i]] = saved[i];
  }
}

void ApplyPenalties(const SampleRow& row) {
  const SamplingParams& params = *row.params;
  const std::span<float> logits = row.logits;
  // Count of outputs per token, and whether a token was seen at all. Kept per thread and cleared by the ids that were
  // touched, so that a step costs the length of the sequence and not that of the vocabulary.
  struct Seen {
    int32_t count = 0;
    bool any = false;
  };
  thread_local std::vector<Seen> seen;
  if (seen.size() < logits.size()) seen.resize(logits.size());
  std::vector<int32_t> touched;
  const auto touch = [&](int32_t id, int count) {
    if (!Inside(logits, id)) return;
    if (!seen[id].any) touched.push_back(id);
    seen[id].any = true;
    seen[id].count += count;
  };
  for (const int32_t id : row.output_ids) touch(id, 1);
  if (params.repetition_penalty != 1) {
    for (const int32_t id : row.prompt_ids) touch(id, 0);
  }
  const float repetition = static_cast<float>(params.repetition_penalty);
  const float frequency = static_cast<float>(params.frequency_penalty);
  const float presence = static_cast<float>(params.presence_penalty);
  for (const int32_t id : touched) {
    float& logit = logits[id];
    if (params.repetition_penalty != 1) logit = logit > 0 ? logit / repetition : logit * repetition;
    logit -= frequency * static_cast<float>(seen[id].count);
    if (seen[id].count > 0) logit -= presence;
    seen[id] = {};
  }
}

void ApplyBadWords(const SampleRow& row) {
  for (const std::vector<int32_t>& word : row.params->bad_words_ids) {
    if (word.empty() || word.size() - 1 > row.output_ids.size() || !Inside(row.logits, word.back())) continue;
    const auto tail = row.output_ids.last(word.size() - 1);
    if (std::equal(tail.begin(), tail.end(), word.begin())) row.logits[word.back()] = -kInf;
  }
}

}  // namespace

void ApplyAllowedMask(std::span<float> logits, std::span<const uint32_t> allowed_mask) {
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool allowed = i / 32 < allowed_mask.size() && (allowed_mask[i / 32] >> (i % 32) & 1u);
    if (!allowed) logits[i] = -kInf;
  }
}

bool NeedsLogitsSteps(const SampleRow& row) {
  const SamplingParams& params = *row.params;
  return params.allowed_token_ids || !params.logit_bias.empty() || MasksStopTokens(row) || UsesPenalties(params) ||
         !params.bad_words_ids.empty();
}

void ApplyLogitsSteps(const SampleRow& row) {
  const SamplingParams& params = *row.params;
  if (params.allowed_token_ids) KeepOnly(row.logits, *params.allowed_token_ids);
  for (const auto& [id, bias] : params.logit_bias) {
    if (Inside(row.logits, id)) row.logits[id] += bias;
  }
  if (MasksStopTokens(row)) {
    for (const int32_t id : params.all_stop_token_ids) {
      if (Inside(row.logits, id)) row.logits[id] = -kInf;
    }
  }
  if (UsesPenalties(params)) ApplyPenalties(row);
  ApplyBadWords(row);
}

}  // namespace vllm
