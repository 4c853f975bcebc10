// Resolves and checks the scheduler's knobs.
#include "engine/sched/scheduler_config.h"

#include <algorithm>

#include "base/result.h"

namespace vllm {
namespace {

constexpr int64_t kDefaultBatchedTokens = 2048;

template <class... Parts>
[[noreturn]] void Refuse(const Parts&... parts) {
  base::Throw(base::ErrorCode::kInvalidArgument, parts...);
}

SchedulingPolicy PolicyOf(const std::string& name) {
  if (name == "fcfs") return SchedulingPolicy::kFcfs;
  if (name == "priority") return SchedulingPolicy::kPriority;
  Refuse("scheduling_policy '", name, "' is not known (supported: fcfs, priority)");
}

}  // namespace

void CheckSchedulerConfig(const SchedulerConfig& config) {
  if (config.max_model_len < 1) Refuse("max_model_len (", config.max_model_len, ") must be at least 1");
  if (config.max_num_seqs < 1) Refuse("max_num_seqs (", config.max_num_seqs, ") must be at least 1");
  if (config.max_num_batched_tokens < 1) {
    Refuse("max_num_batched_tokens (", config.max_num_batched_tokens, ") must be at least 1");
  }
  if (config.max_num_batched_tokens < config.max_model_len && !config.enable_chunked_prefill) {
    Refuse("max_num_batched_tokens (", config.max_num_batched_tokens, ") is smaller than max_model_len (",
           config.max_model_len, "), and without chunked prefill longer prompts could never run; increase ",
           "max_num_batched_tokens, decrease max_model_len or enable chunked prefill");
  }
  if (config.max_num_batched_tokens < config.max_num_seqs) {
    Refuse("max_num_batched_tokens (", config.max_num_batched_tokens,
           ") must be greater than or equal to max_num_seqs (", config.max_num_seqs, ")");
  }
  if (config.max_num_batched_tokens <= config.num_spec_tokens) {
    Refuse("max_num_batched_tokens (", config.max_num_batched_tokens, ") leaves no room for a token and its ",
           config.num_spec_tokens, " drafts; increase max_num_batched_tokens or decrease num_speculative_tokens");
  }
  if (config.long_prefill_token_threshold < 0 || config.long_prefill_token_threshold > config.max_model_len) {
    Refuse("long_prefill_token_threshold (", config.long_prefill_token_threshold,
           ") must be between 0 and the max_model_len (", config.max_model_len, ")");
  }
  if (!(config.watermark >= 0 && config.watermark < 1)) {
    Refuse("watermark (", config.watermark, ") must be at least 0 and below 1");
  }
}

SchedulerConfig MakeSchedulerConfig(const EngineConfig& config, int64_t max_model_len) {
  SchedulerConfig result{
      .max_model_len = max_model_len,
      .max_num_seqs = config.max_num_seqs,
      .long_prefill_token_threshold = config.long_prefill_token_threshold,
      .long_prefill_token_threshold_adaptive = config.long_prefill_token_threshold_adaptive,
      .enable_chunked_prefill = config.enable_chunked_prefill,
      .async_scheduling = config.async_scheduling,
      .reserve_full_prompt = config.scheduler_reserve_full_isl,
      .watermark = config.watermark,
      .enable_prefix_caching = config.enable_prefix_caching,
      .policy = PolicyOf(config.scheduling_policy),
  };
  if (config.max_num_batched_tokens.has_value()) {
    result.max_num_batched_tokens = *config.max_num_batched_tokens;
  } else {
    int64_t tokens = kDefaultBatchedTokens;
    if (!config.enable_chunked_prefill) tokens = std::max(tokens, max_model_len);
    if (config.max_num_seqs >= 1) tokens = std::min(tokens, config.max_num_seqs * max_model_len);
    result.max_num_batched_tokens = tokens;
    // Whoever sets the budget wants just that; and prompts in one piece take what they take.
    if (config.enable_chunked_prefill) result.itl_target_us = static_cast<int64_t>(config.itl_target_ms * 1000);
  }
  CheckSchedulerConfig(result);
  return result;
}

}  // namespace vllm
