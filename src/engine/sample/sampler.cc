// Sampling of one row: logits steps, temperature, truncation, Gumbel-max, logprobs.
#include "engine/sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/sample/gumbel.h"
#include "engine/sample/logits_steps.h"
#include "engine/sample/row_math.h"
#include "engine/sample/truncate.h"

namespace vllm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

bool UsesLogits(LogprobsMode mode) {
  return mode == LogprobsMode::kRawLogits || mode == LogprobsMode::kProcessedLogits;
}
bool UsesProcessed(LogprobsMode mode) {
  return mode == LogprobsMode::kProcessedLogprobs || mode == LogprobsMode::kProcessedLogits;
}

bool WantsLogprobs(const SamplingParams& params) {
  return params.logprobs.has_value() || !params.logprob_token_ids.empty();
}

// Entry 0 is `token_id` with its rank, then `others` in their order, or the top k when there are none. `max` is the
// largest of `logits`.
PositionLogprobs Report(std::span<const float> logits, float max, int32_t token_id, int k,
                        std::span<const int32_t> others, bool as_logits) {
  const LogSumExp norm = as_logits ? LogSumExp{} : LogSumExpOf(logits, max);
  const auto score = [&](float logit) { return as_logits ? logit : norm.LogprobOf(logit); };
  PositionLogprobs out;
  const float own = logits[token_id];
  out.push_back({token_id, score(own), static_cast<int>(CountAtLeast(logits, own))});
  int rank = 0;
  if (!others.empty()) {
    for (const int32_t id : others) out.push_back({id, score(logits[id]), ++rank});
    return out;
  }
  const int64_t count = k < 0 ? static_cast<int64_t>(logits.size()) : k;
  for (const Candidate& top : TopK(logits, count)) out.push_back({top.id, score(top.value), ++rank});
  return out;
}

// Replaces a row whose maximum is +inf by one in which those tokens share the mass.
void ShareInfinity(std::span<float> logits) {
  for (float& logit : logits) logit = logit == kInf ? 0 : -kInf;
}

// Steps 7 to 10 on a row with temperature. With `write_back` the row afterwards holds the processed logits.
int32_t SampleRandom(const SampleRow& row, float max, bool write_back) {
  const SamplingParams& params = *row.params;
  const std::span<float> logits = row.logits;
  if (max == kInf) {
    ShareInfinity(logits);
    max = 0;
  }
  if (params.temperature != 1) {
    const float temperature = static_cast<float>(params.temperature);
    Divide(logits, temperature);
    max /= temperature;
    if (max == kInf) {  // finite logits that overflowed
      ShareInfinity(logits);
      max = 0;
    }
  }
  // vLLM keys the noise by the position of the last known token.
  const NoiseKey key = {row.seed, row.position - 1};
  const Truncation truncation = {params.top_k, static_cast<float>(params.top_p), static_cast<float>(params.min_p)};
  if (!truncation.any(logits.size())) return GumbelArgmax(logits, max, key);
  const std::vector<Candidate> candidates = Truncate(logits, max, truncation);
  if (write_back) {
    std::fill(logits.begin(), logits.end(), -kInf);
    for (const Candidate& candidate : candidates) logits[candidate.id] = candidate.value;
  }
  return GumbelArgmax(candidates, key);
}

}  // namespace

bool Sampler::NeedsLogits(const SampleRow& row) {
  return !row.params->greedy() || !row.allowed_mask.empty() || WantsLogprobs(*row.params) || NeedsLogitsSteps(row);
}

SampledToken Sampler::Sample(const SampleRow& row) const {
  const SamplingParams& params = *row.params;
  const std::span<float> logits = row.logits;
  CHECK(!logits.empty() || (row.max && !NeedsLogits(row)), "a row without logits");
  RowMax max = row.max ? *row.max : MaxOf(logits);
  if (max.has_nan) {
    return {.error =
                base::MakeError(base::ErrorCode::kInternal, "the model's logits hold NaN at position ", row.position)};
  }
  if (!row.allowed_mask.empty()) {
    ApplyAllowedMask(logits, row.allowed_mask);
    max = MaxOf(logits);
  }
  const bool wants_logprobs = WantsLogprobs(params);
  const bool changes_row =
      NeedsLogitsSteps(row) || (!params.greedy() && (params.temperature != 1 || max.value == kInf));
  // Raw logprobs are of the row before the steps below; kept per thread, as steps allocate nothing of this size.
  thread_local std::vector<float> raw;
  std::span<const float> report_row = logits;
  const float raw_max = max.value;
  if (wants_logprobs && changes_row && !UsesProcessed(mode_)) {
    raw.assign(logits.begin(), logits.end());
    report_row = raw;
  }
  if (NeedsLogitsSteps(row)) {
    ApplyLogitsSteps(row);
    max = MaxOf(logits);
  }
  if (max.value == -kInf) {
    return {.error = base::MakeError(base::ErrorCode::kInvalidArgument,
                                     "no token may follow: the request's masks forbid the whole vocabulary")};
  }
  SampledToken out;
  if (params.greedy()) {
    out.token_id = max.index >= 0 ? max.index : FirstIndexOf(logits, max.value);
  } else {
    out.token_id = SampleRandom(row, max.value, wants_logprobs && UsesProcessed(mode_));
  }
  CHECK(out.token_id >= 0, "no token was sampled");
  if (wants_logprobs) {
    const float report_max = UsesProcessed(mode_) ? MaxOf(logits).value : raw_max;
    out.logprobs = Report(report_row, report_max, out.token_id, params.logprobs.value_or(0), params.logprob_token_ids,
                          UsesLogits(mode_));
  }
  return out;
}

PositionLogprobs LogprobsOf(std::span<const float> logits, const RowMax& max, int32_t token_id, int k) {
  CHECK(token_id >= 0 && static_cast<size_t>(token_id) < logits.size(), "token ", token_id, " of ", logits.size());
  if (!max.has_nan) return Report(logits, max.value, token_id, k, {}, false);
  // NaN has no order; such a token counts as impossible.
  std::vector<float> clean(logits.begin(), logits.end());
  for (float& logit : clean) logit = logit == logit ? logit : -kInf;
  return Report(clean, MaxOf(clean).value, token_id, k, {}, false);
}

}  // namespace vllm
