// Passes over one row of logits: maximum, log-sum-exp, top k, counts. The same bits on every machine; no allocation
// beyond results.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace vllm {

// One token of a row with its (possibly scaled) logit.
struct Candidate {
  float value = 0;
  int32_t id = 0;
};

struct RowMax {
  float value = 0;       // -inf for an empty row
  bool has_nan = false;  // NaN elements do not take part in `value`
  int32_t index = -1;    // lowest that holds `value`; -1: not looked for
};
// Leaves the index alone.
RowMax MaxOf(std::span<const float> row);

// Lowest index whose element equals the maximum `value`; -1 when there is none.
int32_t FirstIndexOf(std::span<const float> row, float value);

// log(sum(exp(row))) kept as maximum and remainder, so that logprobs of large logits stay exact. Infinite maxima are
// allowed: the tokens at +inf share the whole mass. Of an all -inf row every logprob is -inf. The row must not hold
// NaN.
struct LogSumExp {
  float max = 0;
  double log_sum = 0;  // log(sum(exp(x - max)))
  float LogprobOf(float logit) const;
};
LogSumExp LogSumExpOf(std::span<const float> row, float max);

// Elements >= value: the 1-based rank of a token with that logit, ties included.
int64_t CountAtLeast(std::span<const float> row, float value);

// The k largest, descending; among equals the lower id first. k is clamped to the row. Only those k are sorted.
std::vector<Candidate> TopK(std::span<const float> row, int64_t k);

// The k-th largest element, 1 <= k <= row.size(). Sorts nothing.
float KthLargest(std::span<const float> row, int64_t k);

// Every element >= threshold, in the order of ids.
std::vector<Candidate> CollectAtLeast(std::span<const float> row, float threshold);

// row[i] = row[i] / divisor.
void Divide(std::span<float> row, float divisor);

}  // namespace vllm
