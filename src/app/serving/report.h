// The figures of vllm bench serve, as vLLM computes, prints and saves them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/serving/load_client.h"
#include "base/json.h"

namespace vllm {

// What a report is asked for.
struct ReportOptions {
  std::vector<std::string> metrics = {};  // of ttft, tpot, itl, e2el, client_queue_time, e2el_including_client_queue
  std::vector<double> percentiles = {};   // 0 .. 100
  std::vector<std::pair<std::string, double>> goodput = {};  // ttft, tpot or e2el → milliseconds
  std::optional<int64_t> max_concurrency = {};
  std::optional<double> request_rate = {};  // absent: all at once
  bool counts_tokens = true;                // false without a tokenizer: only what needs none is printed
};

// Milliseconds; zeros of no values.
struct Distribution {
  double mean = 0, median = 0, std = 0;
  std::vector<std::pair<double, double>> percentiles = {};
};

struct ServeMetrics {
  int64_t completed = 0, failed = 0, total_input = 0, total_output = 0;
  double duration_s = 0, request_throughput = 0, request_goodput = 0, output_throughput = 0, total_token_throughput = 0;
  double max_output_tokens_per_s = 0;
  int64_t max_concurrent_requests = 0;
  std::vector<int64_t> output_lens = {};                                 // by request; 0 of a failed one
  std::vector<std::pair<std::string, Distribution>> distributions = {};  // of the metrics that were asked for
};

// `count_tokens` gives the tokens of an answer whose server told no usage. Seconds become milliseconds.
ServeMetrics ComputeMetrics(const LoadRun& run, const ReportOptions& options,
                            const std::function<int64_t(const std::string&)>& count_tokens);

// The block that vLLM prints, line by line.
std::string ReportText(const ServeMetrics& metrics, const ReportOptions& options);

// Fields of vLLM's result file that the run gives, in its order; with `detailed` those of every request too.
base::Json ReportJson(const LoadRun& run, const ServeMetrics& metrics, const ReportOptions& options, bool detailed);

Distribution Describe(const std::vector<double>& seconds, const std::vector<double>& percentiles);

}  // namespace vllm
