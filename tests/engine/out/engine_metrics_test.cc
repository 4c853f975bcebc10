// vLLM's metrics: buckets, totals taken over from the engine, phases that never happened.
#include "engine/out/engine_metrics.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace vllm {
namespace {

class EngineMetricsTest : public ::testing::Test {
 protected:
  std::string ValueOf(const std::string& series) {
    const std::string text = registry_.Expose();
    const size_t at = text.find("\n" + series + " ");
    if (at == text.npos) return "absent";
    const size_t begin = at + series.size() + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  std::string Of(const std::string& name, const std::string& more = "") {
    return ValueOf(base::StrCat("vllm:", name, "{engine=\"0\",", more, "model_name=\"m\"}"));
  }

  base::MetricsRegistry registry_;
  EngineMetrics metrics_{registry_, "m", 300};
};

TEST_F(EngineMetricsTest, TokenBucketsEndAtTheContext) {
  EXPECT_EQ(Of("request_prompt_tokens_bucket", "le=\"200.0\","), "0.0");
  EXPECT_EQ(Of("request_prompt_tokens_bucket", "le=\"500.0\","), "absent");
  EXPECT_EQ(Of("request_prompt_tokens_bucket", "le=\"+Inf\","), "0.0");
}

TEST_F(EngineMetricsTest, EverySeriesExistsBeforeItsFirstEvent) {
  for (const char* reason : {"stop", "length", "abort", "error"}) {
    EXPECT_EQ(Of("request_success_total", base::StrCat("finished_reason=\"", reason, "\",")), "0.0");
  }
  EXPECT_EQ(Of("num_requests_running"), "0.0");
  EXPECT_EQ(Of("num_preemptions_total"), "0.0");
  EXPECT_EQ(Of("time_to_first_token_seconds_bucket", "le=\"0.001\","), "0.0");
  EXPECT_EQ(Of("inter_token_latency_seconds_bucket", "le=\"0.025\","), "0.0");
  EXPECT_EQ(Of("e2e_request_latency_seconds_bucket", "le=\"7680.0\","), "0.0");
  EXPECT_EQ(Of("iteration_tokens_total_bucket", "le=\"16384.0\","), "0.0");
}

TEST_F(EngineMetricsTest, CountersFollowTheEnginesTotals) {
  metrics_.SetEngineStats({.num_running = 3,
                           .num_waiting = 2,
                           .kv_cache_usage = 0.5,
                           .preemptions = 4,
                           .prefix_cache_queries = 100,
                           .prefix_cache_hits = 60});
  metrics_.SetEngineStats({.num_running = 1,
                           .num_waiting = 0,
                           .kv_cache_usage = 0.25,
                           .preemptions = 5,
                           .prefix_cache_queries = 150,
                           .prefix_cache_hits = 60});
  EXPECT_EQ(Of("num_requests_running"), "1.0");
  EXPECT_EQ(Of("num_requests_waiting"), "0.0");
  EXPECT_EQ(ValueOf("vllm:num_requests_waiting_by_reason{engine=\"0\",model_name=\"m\",reason=\"capacity\"}"), "0.0");
  EXPECT_EQ(Of("kv_cache_usage_perc"), "0.25");
  EXPECT_EQ(Of("num_preemptions_total"), "5.0");
  EXPECT_EQ(Of("prefix_cache_queries_total"), "150.0");
  EXPECT_EQ(Of("prefix_cache_hits_total"), "60.0");
}

TEST_F(EngineMetricsTest, PhasesAddUp) {
  metrics_.ObserveFinished({.reason = FinishReason::kLength,
                            .num_prompt_tokens = 10,
                            .num_cached_tokens = 4,
                            .num_generation_tokens = 5,
                            .max_tokens = 5,
                            .arrival_us = 1'000'000,
                            .scheduled_us = 3'000'000,
                            .first_token_us = 4'000'000,
                            .last_token_us = 8'000'000,
                            .end_us = 8'500'000});
  EXPECT_EQ(Of("e2e_request_latency_seconds_sum"), "7.5");
  EXPECT_EQ(Of("request_queue_time_seconds_sum"), "2.0");
  EXPECT_EQ(Of("request_prefill_time_seconds_sum"), "1.0");
  EXPECT_EQ(Of("request_decode_time_seconds_sum"), "4.0");
  EXPECT_EQ(Of("request_inference_time_seconds_sum"), "5.0");
  EXPECT_EQ(Of("request_time_per_output_token_seconds_sum"), "1.0");
  EXPECT_EQ(Of("request_prefill_kv_computed_tokens_sum"), "6.0");
  EXPECT_EQ(Of("request_params_max_tokens_sum"), "5.0");
}

TEST_F(EngineMetricsTest, PhasesThatNeverHappenedAreNotObserved) {
  metrics_.ObserveFinished({.reason = FinishReason::kAbort, .arrival_us = 1'000'000, .end_us = 2'000'000});
  EXPECT_EQ(Of("request_success_total", "finished_reason=\"abort\","), "1.0");
  EXPECT_EQ(Of("e2e_request_latency_seconds_count"), "1.0");
  for (const char* name : {"queue", "prefill", "decode", "inference"}) {
    EXPECT_EQ(Of(base::StrCat("request_", name, "_time_seconds_count")), "0.0");
  }
}

TEST_F(EngineMetricsTest, TheCacheConfigurationIsALabelSet) {
  EngineInfo info;
  info.block_size = 32;
  info.num_kv_blocks = 77;
  info.kv_cache_dtype = "fp8_e4m3";
  AddCacheConfigInfo(registry_, {}, info);
  EXPECT_EQ(ValueOf("vllm:cache_config_info{block_size=\"32\",cache_dtype=\"fp8_e4m3\",enable_prefix_caching=\"True\","
                    "engine=\"0\","
                    "gpu_memory_utilization=\"None\",kv_cache_memory_bytes=\"None\",num_gpu_blocks=\"77\"}"),
            "1.0");
}

}  // namespace
}  // namespace vllm
