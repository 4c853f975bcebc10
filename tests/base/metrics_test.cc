// The metrics registry's exposition text.
#include "base/metrics.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "base/check.h"

namespace base {
namespace {

// Without the _created series, whose values are the time.
std::string Stable(const MetricsRegistry& registry) {
  std::istringstream lines(registry.Expose());
  std::string out, line;
  while (std::getline(lines, line)) {
    if (line.find("_created") == line.npos) out += line + "\n";
  }
  return out;
}

TEST(MetricsRegistryTest, WritesCountersGaugesAndHistogramsAsPythonDoes) {
  MetricsRegistry registry;
  registry.AddCounter("vllm:prompt_tokens_total", "Number of prefill tokens.", {{"model_name", "m"}, {"engine", "0"}})
      .Increment(12);
  registry.AddGauge("vllm:num_requests_running", "Running.").Set(2.5);
  const Histogram histogram = registry.AddHistogram("vllm:e2e", "Latency.", {0.3, 1, 10}, {{"engine", "0"}});
  histogram.Observe(1);
  histogram.Observe(1.5);
  histogram.Observe(100);
  EXPECT_EQ(Stable(registry),
            "# HELP vllm:e2e Latency.\n# TYPE vllm:e2e histogram\n"
            "vllm:e2e_bucket{engine=\"0\",le=\"0.3\"} 0.0\nvllm:e2e_bucket{engine=\"0\",le=\"1.0\"} 1.0\n"
            "vllm:e2e_bucket{engine=\"0\",le=\"10.0\"} 2.0\nvllm:e2e_bucket{engine=\"0\",le=\"+Inf\"} 3.0\n"
            "vllm:e2e_count{engine=\"0\"} 3.0\nvllm:e2e_sum{engine=\"0\"} 102.5\n"
            "# HELP vllm:num_requests_running Running.\n# TYPE vllm:num_requests_running gauge\n"
            "vllm:num_requests_running 2.5\n"
            "# HELP vllm:prompt_tokens_total Number of prefill tokens.\n# TYPE vllm:prompt_tokens_total counter\n"
            "vllm:prompt_tokens_total{engine=\"0\",model_name=\"m\"} 12.0\n");
}

TEST(MetricsRegistryTest, EscapesHelpAndLabelValues) {
  MetricsRegistry registry;
  registry.AddGauge("g", "two\nlines \\ \"q\"", {{"name", "a\"b\\c\nd"}}).Set(1);
  EXPECT_EQ(registry.Expose(), "# HELP g two\\nlines \\\\ \"q\"\n# TYPE g gauge\ng{name=\"a\\\"b\\\\c\\nd\"} 1.0\n");
}

TEST(MetricsRegistryTest, WritesLargeNumbersWithAnExponent) {
  MetricsRegistry registry;
  const Counter counter = registry.AddCounter("c_total", "C.");
  counter.Increment(999999);
  EXPECT_NE(registry.Expose().find("\nc_total 999999.0\n"), std::string::npos);
  counter.Increment(234568);
  EXPECT_NE(registry.Expose().find("\nc_total 1.234567e+06\n"), std::string::npos);
  counter.Increment(1e16 - 1234567);
  EXPECT_NE(registry.Expose().find("\nc_total 1e+16\n"), std::string::npos);
}

TEST(MetricsRegistryTest, EverySeriesHasItsCreationTime) {
  MetricsRegistry registry;
  registry.AddCounter("a_total", "A.", {{"x", "1"}});
  registry.AddHistogram("h", "H.", {1});
  const std::string text = registry.Expose();
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(# TYPE a_created gauge\na_created\{x="1"\} [0-9.]+e\+09\n)")))
      << text;
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(# TYPE h_created gauge\nh_created [0-9.]+e\+09\n)"))) << text;
}

TEST(MetricsRegistryTest, TheSameLabelsAreTheSameSeries) {
  MetricsRegistry registry;
  registry.AddCounter("a_total", "A.", {{"x", "1"}}).Increment();
  registry.AddCounter("a_total", "A.", {{"x", "1"}}).Increment();
  EXPECT_EQ(registry.AddCounter("a_total", "A.", {{"x", "1"}}).Value(), 2);
  EXPECT_EQ(registry.AddCounter("a_total", "A.", {{"x", "2"}}).Value(), 0);
}

TEST(MetricsRegistryTest, ANameOfAnotherTypeIsAnError) {
  MetricsRegistry registry;
  registry.AddGauge("a_total", "A.");
  EXPECT_THROW(registry.AddCounter("a_total", "A."), InternalError);
  EXPECT_THROW(registry.AddCounter("no_suffix", "A."), InternalError);
}

TEST(MetricsRegistryTest, RefreshersRunBeforeEachExposition) {
  MetricsRegistry registry;
  const Gauge gauge = registry.AddGauge("g", "G.");
  int value = 0;
  registry.OnCollect([&] { gauge.Set(++value); });
  EXPECT_NE(registry.Expose().find("g 1.0"), std::string::npos);
  EXPECT_NE(registry.Expose().find("g 2.0"), std::string::npos);
}

TEST(MetricsRegistryTest, RecordsFromManyThreads) {
  MetricsRegistry registry;
  const Counter counter = registry.AddCounter("c_total", "C.");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) counter.Increment();
      registry.Expose();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.Value(), 4000);
}

}  // namespace
}  // namespace base
