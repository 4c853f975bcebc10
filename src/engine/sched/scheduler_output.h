// What one step is to compute, from the scheduler to the runner; and what came of it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/types.h"

namespace vllm {

// Block ids by KV group: [group][block].
using BlockIds = std::vector<std::vector<int32_t>>;

struct NewRequestData {
  RequestId id = 0;
  std::shared_ptr<const SamplingParams> params = {};
  uint64_t seed = 0;
  std::vector<int32_t> token_ids = {};  // prompt, and for a resumed request its outputs so far
  int64_t num_prompt_tokens = 0;
  int64_t num_computed_tokens = 0;  // prefix-cache hit
  BlockIds block_ids = {};          // the whole table
  bool resumed = false;             // was preempted: replaces the runner's state
};

struct CachedRequestData {
  RequestId id = 0;
  int64_t num_computed_tokens = 0;
  BlockIds new_block_ids = {};  // appended to the tables
  // Sliding-window groups only: leading table entries that now are the null block (already freed), by group.
  std::vector<int32_t> num_null_blocks = {};
};

struct ScheduledTokens {
  RequestId id = 0;
  int32_t num_tokens = 0;
  // Draft tokens to verify in this step; -1 are placeholders that the runner fills.
  std::vector<int32_t> spec_token_ids = {};
  bool samples = false;  // the last token of this chunk is the last known token: a token is sampled
};

struct SchedulerOutput {
  uint64_t step = 0;
  std::vector<NewRequestData> new_requests = {};
  std::vector<CachedRequestData> cached_requests = {};
  std::vector<ScheduledTokens> scheduled = {};  // order of the batch
  int64_t total_tokens = 0;
  std::vector<RequestId> finished = {};  // ended since the last step: the runner drops their state
  std::vector<RequestId> preempted = {};
  int num_common_prefix_blocks = 0;
};

struct SequenceOutput {
  RequestId id = 0;
  std::vector<int32_t> token_ids = {};  // empty for a partial prefill
  std::vector<PositionLogprobs> logprobs = {};
  std::vector<std::optional<PositionLogprobs>> prompt_logprobs = {};  // when the prompt has been computed to its end
  std::optional<base::Error> error = {};                              // ends this request only
};

struct ModelRunnerOutput {
  std::vector<SequenceOutput> sequences = {};              // order of SchedulerOutput::scheduled
  std::vector<std::vector<int32_t>> draft_token_ids = {};  // empty without a proposer
  int64_t elapsed_us = 0;                                  // what the step took, without waiting for earlier ones
};

}  // namespace vllm
