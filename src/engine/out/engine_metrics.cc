// Registration and recording of vLLM's engine metrics.
#include "engine/out/engine_metrics.h"

#include "base/py_text.h"
#include "base/strings.h"

namespace vllm {
namespace {

using Buckets = std::vector<double>;

const Buckets kTimeToFirstToken = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                   1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
const Buckets kTokenLatency = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                               0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
const Buckets kRequestLatency = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                 30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
const Buckets kIterationTokens = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

Buckets OneTwoFive(int64_t max) {
  Buckets buckets;
  for (double power = 1;; power *= 10) {
    for (const double mantissa : {1.0, 2.0, 5.0}) {
      if (mantissa * power > static_cast<double>(max)) return buckets;
      buckets.push_back(mantissa * power);
    }
  }
}

double Seconds(int64_t from_us, int64_t to_us) { return static_cast<double>(to_us - from_us) * 1e-6; }

}  // namespace

EngineMetrics::EngineMetrics(base::MetricsRegistry& registry, const std::string& model_name, int64_t max_model_len) {
  const base::MetricsRegistry::Labels labels = {{"model_name", model_name}, {"engine", "0"}};
  const auto with = [&](const char* name, const char* value) {
    base::MetricsRegistry::Labels more = labels;
    more[name] = value;
    return more;
  };
  const auto counter = [&](const char* name, const char* help) { return registry.AddCounter(name, help, labels); };
  const auto gauge = [&](const char* name, const char* help) { return registry.AddGauge(name, help, labels); };
  const auto histogram = [&](const char* name, const char* help, const Buckets& buckets) {
    return registry.AddHistogram(name, help, buckets, labels);
  };
  running_ = gauge("vllm:num_requests_running", "Sequences that the steps compute.");
  waiting_ = gauge("vllm:num_requests_waiting", "Sequences that wait to be scheduled.");
  const char* by_reason = "Waiting sequences by reason; the sum is vllm:num_requests_waiting.";
  waiting_for_capacity_ =
      registry.AddGauge("vllm:num_requests_waiting_by_reason", by_reason, with("reason", "capacity"));
  registry.AddGauge("vllm:num_requests_waiting_by_reason", by_reason, with("reason", "deferred")).Set(0);
  kv_cache_usage_ = gauge("vllm:kv_cache_usage_perc", "Share of the KV cache in use; 1 is all of it.");
  prefix_cache_queries_ = counter("vllm:prefix_cache_queries_total", "Tokens looked up in the prefix cache.");
  prefix_cache_hits_ = counter("vllm:prefix_cache_hits_total", "Tokens found in the prefix cache.");
  preemptions_ = counter("vllm:num_preemptions_total", "Preemptions so far.");
  prompt_tokens_ = counter("vllm:prompt_tokens_total", "Prompt tokens processed.");
  const char* by_source = "Prompt tokens by source.";
  prompt_tokens_computed_ =
      registry.AddCounter("vllm:prompt_tokens_by_source_total", by_source, with("source", "local_compute"));
  prompt_tokens_from_cache_ =
      registry.AddCounter("vllm:prompt_tokens_by_source_total", by_source, with("source", "local_cache_hit"));
  prompt_tokens_cached_ = counter("vllm:prompt_tokens_cached_total", "Prompt tokens taken from the cache.");
  generation_tokens_ = counter("vllm:generation_tokens_total", "Tokens generated.");
  for (const FinishReason reason :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kAbort, FinishReason::kError}) {
    finished_[static_cast<size_t>(reason)] =
        registry.AddCounter("vllm:request_success_total", "Sequences that have ended, by reason.",
                            with("finished_reason", std::string(FinishReasonName(reason)).c_str()));
  }
  const auto rejections = [&](const char* reason) {
    return registry.AddCounter("vllm:admission_rejections_total", "Requests refused by a queue limit.",
                               {{"model_name", model_name}, {"reason", reason}});
  };
  rejected_reqs_ = rejections("max_num_queued_reqs");
  rejected_tokens_ = rejections("max_num_queued_tokens");

  const Buckets token_buckets = OneTwoFive(max_model_len);
  iteration_tokens_ = histogram("vllm:iteration_tokens_total", "Tokens per engine step.", kIterationTokens);
  prompt_length_ = histogram("vllm:request_prompt_tokens", "Prompt tokens of ended sequences.", token_buckets);
  generation_length_ =
      histogram("vllm:request_generation_tokens", "Generated tokens of ended sequences.", token_buckets);
  longest_generation_ = histogram("vllm:request_max_num_generation_tokens",
                                  "Longest generation among the choices of a request.", token_buckets);
  params_n_ = histogram("vllm:request_params_n", "The parameter n of requests.", {1, 2, 5, 10, 20});
  params_max_tokens_ = histogram("vllm:request_params_max_tokens", "The parameter max_tokens.", token_buckets);
  prefill_computed_ = histogram("vllm:request_prefill_kv_computed_tokens",
                                "Prompt tokens computed, those from the cache left out.", token_buckets);
  num_preemptions_ = histogram("vllm:request_num_preemptions", "Preemptions of a sequence.", {1, 2, 3, 4, 5, 10, 20});
  time_to_first_token_ =
      histogram("vllm:time_to_first_token_seconds", "From arrival to the first output.", kTimeToFirstToken);
  inter_token_latency_ = histogram("vllm:inter_token_latency_seconds", "Between outputs of a sequence.", kTokenLatency);
  time_per_output_token_ = histogram("vllm:request_time_per_output_token_seconds",
                                     "Mean time per token after the first, of ended sequences.", kTokenLatency);
  e2e_ = histogram("vllm:e2e_request_latency_seconds", "From arrival to the end.", kRequestLatency);
  queue_time_ = histogram("vllm:request_queue_time_seconds", "From arrival to the first schedule.", kRequestLatency);
  prefill_time_ =
      histogram("vllm:request_prefill_time_seconds", "From the first schedule to the first token.", kRequestLatency);
  decode_time_ = histogram("vllm:request_decode_time_seconds", "From the first token to the last.", kRequestLatency);
  inference_time_ =
      histogram("vllm:request_inference_time_seconds", "From the first schedule to the last token.", kRequestLatency);
}

void EngineMetrics::ObserveStep(int64_t computed_prompt_tokens, int64_t generated_tokens) const {
  iteration_tokens_.Observe(static_cast<double>(computed_prompt_tokens + generated_tokens));
}

void EngineMetrics::CountPrompt(int64_t num_tokens, int64_t num_cached) const {
  prompt_tokens_.Increment(static_cast<double>(num_tokens));
  prompt_tokens_computed_.Increment(static_cast<double>(num_tokens - num_cached));
  prompt_tokens_from_cache_.Increment(static_cast<double>(num_cached));
  prompt_tokens_cached_.Increment(static_cast<double>(num_cached));
}

void EngineMetrics::ObserveFinished(const FinishedSequence& s) const {
  finished_[static_cast<size_t>(s.reason)].Increment();
  e2e_.Observe(Seconds(s.arrival_us, s.end_us));
  prompt_length_.Observe(static_cast<double>(s.num_prompt_tokens));
  generation_length_.Observe(static_cast<double>(s.num_generation_tokens));
  if (s.max_tokens) params_max_tokens_.Observe(static_cast<double>(*s.max_tokens));
  num_preemptions_.Observe(s.num_preemptions);
  // A sequence that ended early has no later phases, and a zero would pull their means down.
  if (s.scheduled_us != 0) queue_time_.Observe(Seconds(s.arrival_us, s.scheduled_us));
  if (s.first_token_us == 0) return;
  prefill_computed_.Observe(static_cast<double>(s.num_prompt_tokens - s.num_cached_tokens));
  const double decode = Seconds(s.first_token_us, s.last_token_us);
  decode_time_.Observe(decode);
  time_per_output_token_.Observe(s.num_generation_tokens > 1 ? decode / static_cast<double>(s.num_generation_tokens - 1)
                                                             : 0);
  if (s.scheduled_us == 0) return;
  prefill_time_.Observe(Seconds(s.scheduled_us, s.first_token_us));
  inference_time_.Observe(Seconds(s.scheduled_us, s.last_token_us));
}

void EngineMetrics::ObserveRequest(int n, int64_t longest_generation) const {
  params_n_.Observe(n);
  longest_generation_.Observe(static_cast<double>(longest_generation));
}

void EngineMetrics::SetEngineStats(const EngineStats& stats) {
  running_.Set(static_cast<double>(stats.num_running));
  waiting_.Set(static_cast<double>(stats.num_waiting));
  waiting_for_capacity_.Set(static_cast<double>(stats.num_waiting));
  kv_cache_usage_.Set(stats.kv_cache_usage);
  const std::lock_guard lock(mutex_);
  const auto catch_up = [](const base::Counter& counter, uint64_t now, uint64_t& last) {
    if (now <= last) return;
    counter.Increment(static_cast<double>(now - last));
    last = now;
  };
  catch_up(preemptions_, stats.preemptions, last_.preemptions);
  catch_up(prefix_cache_queries_, stats.prefix_cache_queries, last_.prefix_cache_queries);
  catch_up(prefix_cache_hits_, stats.prefix_cache_hits, last_.prefix_cache_hits);
  catch_up(rejected_reqs_, stats.rejected_reqs, last_.rejected_reqs);
  catch_up(rejected_tokens_, stats.rejected_tokens, last_.rejected_tokens);
}

void AddCacheConfigInfo(base::MetricsRegistry& registry, const EngineConfig& config, const EngineInfo& info) {
  const auto boolean = [](bool value) { return std::string(value ? "True" : "False"); };
  registry
      .AddGauge("vllm:cache_config_info", "The configuration of the KV cache, as labels.",
                {{"engine", "0"},
                 {"block_size", base::StrCat(info.block_size)},
                 {"cache_dtype", info.kv_cache_dtype},
                 {"num_gpu_blocks", base::StrCat(info.num_kv_blocks)},
                 {"enable_prefix_caching", boolean(config.enable_prefix_caching)},
                 {"gpu_memory_utilization",
                  config.gpu_memory_utilization ? base::PyRepr(*config.gpu_memory_utilization) : "None"},
                 {"kv_cache_memory_bytes",
                  config.kv_cache_memory_bytes ? base::StrCat(*config.kv_cache_memory_bytes) : "None"}})
      .Set(1);
}

}  // namespace vllm
