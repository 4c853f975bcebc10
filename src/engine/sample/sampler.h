// Sampling of one batch of logits, in the order of vLLM's V1 engine (vllm/v1/worker/gpu/sample).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/sample/row_math.h"
#include "engine/types.h"

namespace vllm {

enum class LogprobsMode : int8_t { kRawLogprobs, kProcessedLogprobs, kRawLogits, kProcessedLogits };

// One row to sample. Views live through the call.
struct SampleRow {
  const SamplingParams* params = nullptr;
  // [vocab], modified in place. May be empty with `max` and without NeedsLogits.
  std::span<float> logits = {};
  std::span<const int32_t> prompt_ids = {};
  std::span<const int32_t> output_ids = {};  // generated so far
  uint64_t seed = 0;                         // of the sequence
  int64_t position = 0;                      // of the token to be sampled, counted from the prompt's first
  // Grammar: bit i of word i/32 set means token i may follow; empty means every token may. [ceil(vocab / 32)]
  std::span<const uint32_t> allowed_mask = {};
  // Of `logits` as they come, with its index; absent: the sampler looks.
  std::optional<RowMax> max = {};
};

struct SampledToken {
  int32_t token_id = 0;
  // Entry 0 the sampled token, then the top k (the sampled one again if it is among them) or logprob_token_ids; empty
  // unless asked for.
  PositionLogprobs logprobs = {};
  // Ends this request: the logits hold NaN, or every token is masked. token_id then means nothing.
  std::optional<base::Error> error = {};
};

class Sampler {
 public:
  explicit Sampler(LogprobsMode mode) : mode_(mode) {}
  // Whether more of the row's logits is needed than their maximum: for all but greedy sampling of the logits as they
  // are.
  static bool NeedsLogits(const SampleRow& row);
  // Thread-safe for different rows. The result depends on the row alone, never on its neighbours.
  SampledToken Sample(const SampleRow& row) const;

 private:
  LogprobsMode mode_;
};

// Logprobs of known tokens from raw logits (prompt_logprobs): entry 0 is `token_id`, then the top k (k -1: the
// vocabulary). Thread-safe. A logit of NaN counts as impossible.
// `max` is of `logits`.
PositionLogprobs LogprobsOf(std::span<const float> logits, const RowMax& max, int32_t token_id, int k);

}  // namespace vllm
