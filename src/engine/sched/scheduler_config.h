// The scheduler's knobs, resolved: no absent values, checked against each other.
#pragma once
#include <cstdint>

#include "engine/config.h"
#include "engine/sched/request_queue.h"

namespace vllm {

struct SchedulerConfig {
  int64_t max_model_len = 0;
  int64_t max_num_batched_tokens = 2048;               // a step
  int64_t max_num_seqs = 128;                          // running at once
  int64_t long_prefill_token_threshold = 0;            // most tokens of one prompt a step while others wait; 0: off
  bool long_prefill_token_threshold_adaptive = false;  // at least a fair share of max_num_batched_tokens
  // What a step with decoding sequences should take at most, by the number of prompt tokens that it computes; 0:
  // prompts get all of max_num_batched_tokens.
  int64_t itl_target_us = 0;
  bool enable_chunked_prefill = true;
  bool async_scheduling = true;
  bool reserve_full_prompt = true;  // admit only if all its known tokens fit (scheduler_reserve_full_isl)
  double watermark = 0;
  bool enable_prefix_caching = true;
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  int64_t num_spec_tokens = 0;       // drafts a step
  int64_t num_lookahead_tokens = 0;  // KV slots that the drafter writes beyond the scheduled tokens

  int64_t max_steps_in_flight() const { return async_scheduling ? 2 : 1; }
  int64_t max_in_flight_tokens() const { return max_steps_in_flight() * max_num_batched_tokens; }
};

// Fills absent values as vLLM does. Throws base::Exception (kInvalidArgument) naming options that contradict each
// other.
SchedulerConfig MakeSchedulerConfig(const EngineConfig& config, int64_t max_model_len);
// The check alone.
void CheckSchedulerConfig(const SchedulerConfig& config);

}  // namespace vllm
