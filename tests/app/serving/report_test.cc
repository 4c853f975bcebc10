// The figures of a load run: the expected ones are those of vllm/benchmarks/serve.py for the same answers.
#include "app/serving/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/serving/plot.h"

namespace vllm {
namespace {

TimedAnswer Answer(double start, double ttft, std::vector<double> itl, int64_t prompt, int64_t output) {
  TimedAnswer answer{.success = true,
                     .status = 200,
                     .start_s = start,
                     .ttft_s = ttft,
                     .prompt_tokens = prompt,
                     .output_tokens = output};
  answer.latency_s = ttft;
  for (const double gap : itl) answer.latency_s += gap;
  answer.itl_s = std::move(itl);
  return answer;
}

// Two answers and a failure within two and a half seconds.
LoadRun SmallRun() {
  LoadRun run{.duration_s = 2.5};
  run.answers.push_back(Answer(100.0, 0.1, {0.02, 0.04}, 10, 3));
  run.answers.push_back(Answer(100.5, 0.3, {0.5, 0.5, 0.2}, 20, 4));
  run.answers.push_back({.status = 503, .error = "HTTP 503"});
  run.answers[1].queue_s = 0.25;
  return run;
}

ReportOptions Options() { return {.metrics = {"ttft", "tpot", "itl"}, .percentiles = {50, 99}}; }

const Distribution& Of(const ServeMetrics& metrics, std::string_view name) {
  for (const auto& [known, values] : metrics.distributions)
    if (known == name) return values;
  throw std::runtime_error("no such metric");
}

TEST(Report, CountsAndRatesAreOfTheAnswersThatSucceeded) {
  const ServeMetrics metrics = ComputeMetrics(SmallRun(), Options(), {});
  EXPECT_EQ(metrics.completed, 2);
  EXPECT_EQ(metrics.failed, 1);
  EXPECT_EQ(metrics.total_input, 30);
  EXPECT_EQ(metrics.total_output, 7);
  EXPECT_DOUBLE_EQ(metrics.request_throughput, 0.8);
  EXPECT_DOUBLE_EQ(metrics.output_throughput, 2.8);
  EXPECT_DOUBLE_EQ(metrics.total_token_throughput, 14.8);
  EXPECT_EQ(metrics.output_lens, (std::vector<int64_t>{3, 4, 0}));
}

TEST(Report, LatenciesAreThoseOfVllm) {
  const ServeMetrics metrics = ComputeMetrics(SmallRun(), Options(), {});
  EXPECT_NEAR(Of(metrics, "ttft").mean, 200, 1e-9);
  EXPECT_NEAR(Of(metrics, "ttft").std, 100, 1e-9);
  // (0.16 - 0.1) / 2 and (1.5 - 0.3) / 3
  EXPECT_NEAR(Of(metrics, "tpot").mean, (30 + 400) / 2.0, 1e-9);
  EXPECT_NEAR(Of(metrics, "itl").median, 200, 1e-9);
  EXPECT_NEAR(Of(metrics, "itl").percentiles[1].second, 500, 1e-6);
}

TEST(Report, PeaksAreOfSecondsSinceTheFirstStart) {
  const ServeMetrics metrics = ComputeMetrics(SmallRun(), Options(), {});
  // Second 0: three events of the first answer and one of the second; second 1: two of the second.
  EXPECT_DOUBLE_EQ(metrics.max_output_tokens_per_s, 4);
  EXPECT_EQ(metrics.max_concurrent_requests, 2);
}

TEST(Report, GoodputCountsRequestsThatKeepEveryObjective) {
  ReportOptions options = Options();
  options.goodput = {{"ttft", 350}, {"tpot", 100}};
  EXPECT_DOUBLE_EQ(ComputeMetrics(SmallRun(), options, {}).request_goodput, 0.4);
  options.goodput = {{"e2el", 2000}};
  EXPECT_DOUBLE_EQ(ComputeMetrics(SmallRun(), options, {}).request_goodput, 0.8);
}

TEST(Report, TokensAreCountedWhereTheServerToldNone) {
  LoadRun run = SmallRun();
  run.answers[0].output_tokens = 0;
  run.answers[0].text = "abcde";
  const ServeMetrics metrics =
      ComputeMetrics(run, Options(), [](const std::string& text) { return static_cast<int64_t>(text.size()); });
  EXPECT_EQ(metrics.total_output, 9);
}

TEST(Report, NoAnswerGivesZeros) {
  LoadRun run{.duration_s = 1};
  run.answers.resize(2);
  const ServeMetrics metrics = ComputeMetrics(run, Options(), {});
  EXPECT_EQ(metrics.completed, 0);
  EXPECT_EQ(Of(metrics, "ttft").percentiles[1].second, 0);
  EXPECT_EQ(metrics.max_concurrent_requests, 0);
}

TEST(Report, PrintsVllmsLinesInVllmsOrder) {
  ReportOptions options = Options();
  options.metrics = {"ttft"};
  options.percentiles = {99, 99.9};
  options.max_concurrency = 2;
  options.request_rate = 4;
  const std::string expected =
      "============ Serving Benchmark Result ============\n"
      "Successful requests:                     2         \n"
      "Failed requests:                         1         \n"
      "Maximum request concurrency:             2         \n"
      "Request rate configured (RPS):           4.00      \n"
      "Benchmark duration (s):                  2.50      \n"
      "Total input tokens:                      30        \n"
      "Total generated tokens:                  7         \n"
      "Request throughput (req/s):              0.80      \n"
      "Output token throughput (tok/s):         2.80      \n"
      "Peak output token throughput (tok/s):    4.00      \n"
      "Peak concurrent requests:                2.00      \n"
      "Total token throughput (tok/s):          14.80     \n"
      "---------------Time to First Token----------------\n"
      "Mean TTFT (ms):                          200.00    \n"
      "Median TTFT (ms):                        200.00    \n"
      "P99 TTFT (ms):                           298.00    \n"
      "P99.9 TTFT (ms):                         299.80    \n"
      "==================================================\n";
  EXPECT_EQ(ReportText(ComputeMetrics(SmallRun(), options, {}), options), expected);
}

TEST(Report, TheResultFileHasVllmsFields) {
  const LoadRun run = SmallRun();
  const ServeMetrics metrics = ComputeMetrics(run, Options(), {});
  const base::Json brief = ReportJson(run, metrics, Options(), false);
  for (const char* name :
       {"duration", "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput",
        "output_throughput", "total_token_throughput", "latencies", "queue_times", "max_output_tokens_per_s",
        "max_concurrent_requests", "mean_ttft_ms", "median_tpot_ms", "std_itl_ms", "p99_itl_ms"})
    EXPECT_TRUE(brief.contains(name)) << name;
  EXPECT_TRUE(brief["request_goodput"].is_null());
  EXPECT_FALSE(brief.contains("itls"));
  const base::Json detailed = ReportJson(run, metrics, Options(), true);
  EXPECT_EQ(detailed["itls"][0].size(), 2u);
  EXPECT_EQ(detailed["errors"][2], "HTTP 503");
  EXPECT_EQ(detailed["output_lens"], base::Json({3, 4, 0}));
}

TEST(Plot, DrawsEachAnswerAndIsWellFormed) {
  const std::string svg = PlotSvg(SmallRun(), {25, 50}, "a <b> & c");
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg.substr(0, 40);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find("a &lt;b> &amp; c"), std::string::npos);
  // Waiting, green and orange of the first answer; waiting and red of the second.
  size_t bars = 0;
  for (size_t at = svg.find("<rect x="); at != std::string::npos; at = svg.find("<rect x=", at + 1)) ++bars;
  EXPECT_EQ(bars, 5u + 4u);  // and the legend
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Plot, ARunWithoutAnswersIsStillAPicture) {
  LoadRun run;
  run.answers.resize(1);
  const std::string svg = PlotSvg(run, {25, 50}, "");
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace vllm
