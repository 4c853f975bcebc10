// vLLM's engine metrics (vllm/v1/metrics): names, buckets and meanings, as far as this engine measures them.
#pragma once
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/metrics.h"
#include "engine/llm_engine.h"
#include "engine/types.h"

namespace vllm {

// What is known of a sequence when it ends. Times are of the steady clock in microseconds; 0: never happened.
struct FinishedSequence {
  FinishReason reason = FinishReason::kStop;
  int64_t num_prompt_tokens = 0, num_cached_tokens = 0, num_generation_tokens = 0;
  std::optional<int64_t> max_tokens = {};
  int32_t num_preemptions = 0;
  int64_t arrival_us = 0, scheduled_us = 0, first_token_us = 0, last_token_us = 0, end_us = 0;
};

// Thread-safe. One sequence (choice) counts as one finished request, as in vLLM; prompt tokens count once a request.
class EngineMetrics {
 public:
  EngineMetrics(base::MetricsRegistry& registry, const std::string& model_name, int64_t max_model_len);

  void ObserveStep(int64_t computed_prompt_tokens, int64_t generated_tokens) const;
  void ObserveTimeToFirstToken(double seconds) const { time_to_first_token_.Observe(seconds); }
  void ObserveInterTokenLatency(double seconds) const { inter_token_latency_.Observe(seconds); }
  void CountPrompt(int64_t num_tokens, int64_t num_cached) const;
  void CountGenerated(int64_t num_tokens) const { generation_tokens_.Increment(static_cast<double>(num_tokens)); }
  void ObserveFinished(const FinishedSequence& sequence) const;
  // Once a request, when its last sequence has ended.
  void ObserveRequest(int n, int64_t longest_generation) const;
  // Sets the gauges, and brings the counters up to the engine's totals.
  void SetEngineStats(const EngineStats& stats);

 private:
  base::Gauge running_, waiting_, waiting_for_capacity_, kv_cache_usage_;
  base::Counter prefix_cache_queries_, prefix_cache_hits_, preemptions_;
  base::Counter prompt_tokens_, prompt_tokens_computed_, prompt_tokens_from_cache_, prompt_tokens_cached_;
  base::Counter generation_tokens_, rejected_reqs_, rejected_tokens_;
  std::array<base::Counter, 4> finished_;  // by FinishReason
  base::Histogram iteration_tokens_, prompt_length_, generation_length_, longest_generation_, params_n_,
      params_max_tokens_, prefill_computed_, num_preemptions_;
  base::Histogram time_to_first_token_, inter_token_latency_, time_per_output_token_, e2e_, queue_time_, prefill_time_,
      decode_time_, inference_time_;
  std::mutex mutex_;  // guards last_
  EngineStats last_;  // totals that the counters already hold
};

// vllm:cache_config_info, a gauge of 1 whose labels tell the configuration.
void AddCacheConfigInfo(base::MetricsRegistry& registry, const EngineConfig& config, const EngineInfo& info);

}  // namespace vllm
