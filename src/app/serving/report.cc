// Follows calculate_metrics and benchmark of vllm/benchmarks/serve.py.
#include "app/serving/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/bench.h"
#include "base/py_text.h"
#include "base/strings.h"

namespace vllm {
namespace {

constexpr int kWidth = 50, kLabel = 40, kValue = 10;

struct MetricName {
  std::string_view name, label, header;
};
constexpr MetricName kMetrics[] = {
    {"ttft", "TTFT", "Time to First Token"},
    {"tpot", "TPOT", "Time per Output Token (excl. 1st token)"},
    {"itl", "ITL", "Inter-token Latency"},
    {"e2el", "E2EL", "End-to-end Latency"},
    {"client_queue_time", "Client Queue Time", "Client-side Queueing"},
    {"e2el_including_client_queue", "E2EL incl. Client Queue", "Queue-inclusive End-to-end Latency"},
};

// Seconds of the requests that succeeded.
struct Samples {
  std::vector<double> ttft, tpot, all_tpots, itl, e2el, queue, e2el_and_queue;
  const std::vector<double>& Of(std::string_view name) const {
    if (name == "ttft") return ttft;
    if (name == "tpot") return tpot;
    if (name == "itl") return itl;
    if (name == "e2el") return e2el;
    if (name == "client_queue_time") return queue;
    return e2el_and_queue;
  }
};

void AddSample(const TimedAnswer& answer, int64_t output_len, Samples& samples) {
  double tpot = 0;
  if (output_len > 1) {
    tpot = (answer.latency_s - answer.ttft_s) / static_cast<double>(output_len - 1);
    samples.tpot.push_back(tpot);
  }
  samples.all_tpots.push_back(tpot);  // of goodput: one token counts as no time
  samples.itl.insert(samples.itl.end(), answer.itl_s.begin(), answer.itl_s.end());
  samples.ttft.push_back(answer.ttft_s);
  samples.e2el.push_back(answer.latency_s);
  samples.queue.push_back(answer.queue_s);
  samples.e2el_and_queue.push_back(answer.latency_s + answer.queue_s);
}

int64_t CountGood(const Samples& samples, const ReportOptions& options) {
  int64_t good = 0;
  for (size_t i = 0; i < samples.ttft.size(); ++i) {
    good += std::all_of(options.goodput.begin(), options.goodput.end(), [&](const auto& objective) {
      const std::vector<double>& values = objective.first == "tpot" ? samples.all_tpots : samples.Of(objective.first);
      return values[i] * 1000 <= objective.second;
    });
  }
  return good;
}

// The second with the most events, and the second in which the most requests ran.
void FindPeaks(const LoadRun& run, ServeMetrics& metrics) {
  double begin = INFINITY, end = 0;
  for (const TimedAnswer& answer : run.answers) {
    if (!answer.success) continue;
    begin = std::min(begin, answer.start_s);
    end = std::max(end, answer.start_s + answer.latency_s);
  }
  if (begin > end) return;
  const size_t seconds = static_cast<size_t>(std::ceil(end - begin)) + 1;
  std::vector<int64_t> tokens(seconds), requests(seconds);
  for (const TimedAnswer& answer : run.answers) {
    if (!answer.success) continue;
    const double start = answer.start_s - begin;
    double at = start + answer.ttft_s;
    const auto add = [&] { ++tokens[std::min(static_cast<size_t>(at), seconds - 1)]; };
    add();
    for (const double itl : answer.itl_s) {
      at += itl;
      add();
    }
    const size_t last = std::min(static_cast<size_t>(start + answer.latency_s), seconds - 1);
    for (size_t second = static_cast<size_t>(start); second <= last; ++second) ++requests[second];
  }
  metrics.max_output_tokens_per_s = static_cast<double>(*std::max_element(tokens.begin(), tokens.end()));
  metrics.max_concurrent_requests = *std::max_element(requests.begin(), requests.end());
}

// vLLM reports the times in the client's queue only where there is one.
bool Applies(std::string_view name, const ReportOptions& options) {
  if (name == "client_queue_time") return options.max_concurrency.has_value();
  if (name == "e2el_including_client_queue") return options.max_concurrency && options.request_rate;
  return name == "e2el" || options.counts_tokens;
}

// A whole number without its fraction, as vLLM names percentiles.
std::string PercentWord(double percent) {
  const auto whole = static_cast<int64_t>(percent);
  return static_cast<double>(whole) == percent ? base::StrCat(whole) : base::PyRepr(percent);
}

std::string Heading(std::string_view text, char fill) {
  const int room = std::max(0, kWidth - static_cast<int>(text.size()));
  return base::StrCat(std::string(room / 2, fill), text, std::string(room - room / 2, fill), "\n");
}

std::string Row(std::string label, std::string value) {
  label.resize(std::max<size_t>(label.size(), kLabel), ' ');
  value.resize(std::max<size_t>(value.size(), kValue), ' ');
  return base::StrCat(label, " ", value, "\n");
}
std::string Row(std::string label, int64_t value) { return Row(std::move(label), base::StrCat(value)); }
std::string Row(std::string label, double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", value);
  return Row(std::move(label), std::string(text));
}

}  // namespace

Distribution Describe(const std::vector<double>& seconds, const std::vector<double>& percentiles) {
  Distribution found;
  const auto count = static_cast<double>(seconds.size());
  if (seconds.empty()) {
    for (const double percent : percentiles) found.percentiles.emplace_back(percent, 0.0);
    return found;
  }
  found.mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / count;
  double squares = 0;
  for (const double value : seconds) squares += (value - found.mean) * (value - found.mean);
  found.std = std::sqrt(squares / count) * 1000;
  found.mean *= 1000;
  found.median = Percentile(seconds, 50) * 1000;
  for (const double percent : percentiles) found.percentiles.emplace_back(percent, Percentile(seconds, percent) * 1000);
  return found;
}

ServeMetrics ComputeMetrics(const LoadRun& run, const ReportOptions& options,
                            const std::function<int64_t(const std::string&)>& count_tokens) {
  ServeMetrics metrics{.duration_s = run.duration_s};
  Samples samples;
  for (const TimedAnswer& answer : run.answers) {
    metrics.output_lens.push_back(0);
    if (!answer.success) {
      ++metrics.failed;
      continue;
    }
    ++metrics.completed;
    int64_t& output_len = metrics.output_lens.back();
    output_len = answer.output_tokens;
    if (output_len == 0) output_len = count_tokens ? count_tokens(answer.text) : 1;
    metrics.total_input += answer.prompt_tokens;
    metrics.total_output += output_len;
    AddSample(answer, output_len, samples);
  }
  const auto rate = [&](int64_t count) { return static_cast<double>(count) / run.duration_s; };
  metrics.request_throughput = rate(metrics.completed);
  metrics.output_throughput = rate(metrics.total_output);
  metrics.total_token_throughput = rate(metrics.total_input + metrics.total_output);
  if (!options.goodput.empty()) metrics.request_goodput = rate(CountGood(samples, options));
  FindPeaks(run, metrics);
  for (const MetricName& metric : kMetrics) {
    if (std::find(options.metrics.begin(), options.metrics.end(), metric.name) == options.metrics.end()) continue;
    if (Applies(metric.name, options))
      metrics.distributions.emplace_back(metric.name, Describe(samples.Of(metric.name), options.percentiles));
  }
  return metrics;
}

std::string ReportText(const ServeMetrics& metrics, const ReportOptions& options) {
  std::string out = Heading(" Serving Benchmark Result ", '=');
  out += Row("Successful requests:", metrics.completed) + Row("Failed requests:", metrics.failed);
  if (options.max_concurrency) out += Row("Maximum request concurrency:", *options.max_concurrency);
  if (options.request_rate) out += Row("Request rate configured (RPS):", *options.request_rate);
  out += Row("Benchmark duration (s):", metrics.duration_s) + Row("Total input tokens:", metrics.total_input);
  if (options.counts_tokens) out += Row("Total generated tokens:", metrics.total_output);
  out += Row("Request throughput (req/s):", metrics.request_throughput);
  if (!options.goodput.empty()) out += Row("Request goodput (req/s):", metrics.request_goodput);
  if (options.counts_tokens) {
    out += Row("Output token throughput (tok/s):", metrics.output_throughput);
    out += Row("Peak output token throughput (tok/s):", metrics.max_output_tokens_per_s);
  }
  out += Row("Peak concurrent requests:", static_cast<double>(metrics.max_concurrent_requests));
  if (options.counts_tokens) out += Row("Total token throughput (tok/s):", metrics.total_token_throughput);
  for (const auto& [name, values] : metrics.distributions) {
    const auto known = std::find_if(std::begin(kMetrics), std::end(kMetrics),
                                    [&](const MetricName& metric) { return metric.name == name; });
    out += Heading(known->header, '-');
    out += Row(base::StrCat("Mean ", known->label, " (ms):"), values.mean);
    out += Row(base::StrCat("Median ", known->label, " (ms):"), values.median);
    for (const auto& [percent, value] : values.percentiles)
      out += Row(base::StrCat("P", PercentWord(percent), " ", known->label, " (ms):"), value);
  }
  return out + std::string(kWidth, '=') + "\n";
}

base::Json ReportJson(const LoadRun& run, const ServeMetrics& metrics, const ReportOptions& options, bool detailed) {
  base::Json json = base::Json::object();
  json["duration"] = metrics.duration_s;
  json["completed"] = metrics.completed;
  json["failed"] = metrics.failed;
  json["total_input_tokens"] = metrics.total_input;
  json["total_output_tokens"] = metrics.total_output;
  json["request_throughput"] = metrics.request_throughput;
  json["request_goodput"] = options.goodput.empty() ? base::Json() : base::Json(metrics.request_goodput);
  json["output_throughput"] = metrics.output_throughput;
  json["total_token_throughput"] = metrics.total_token_throughput;
  const auto each = [&](auto field) {
    base::Json list = base::Json::array();
    for (const TimedAnswer& answer : run.answers) list.push_back(field(answer));
    return list;
  };
  if (detailed) {
    json["input_lens"] = each([](const TimedAnswer& answer) { return answer.prompt_tokens; });
    json["output_lens"] = metrics.output_lens;
    json["ttfts"] = each([](const TimedAnswer& answer) { return answer.ttft_s; });
    json["itls"] = each([](const TimedAnswer& answer) { return answer.itl_s; });
  }
  json["latencies"] = each([](const TimedAnswer& answer) { return answer.latency_s; });
  if (detailed) json["start_times"] = each([](const TimedAnswer& answer) { return answer.start_s; });
  json["queue_times"] = each([](const TimedAnswer& answer) { return answer.queue_s; });
  if (detailed) {
    json["generated_texts"] = each([](const TimedAnswer& answer) { return answer.text; });
    json["errors"] = each([](const TimedAnswer& answer) { return answer.error; });
  }
  json["max_output_tokens_per_s"] = metrics.max_output_tokens_per_s;
  json["max_concurrent_requests"] = metrics.max_concurrent_requests;
  json["rtfx"] = 0.0;  // of audio
  for (const auto& [name, values] : metrics.distributions) {
    json[base::StrCat("mean_", name, "_ms")] = values.mean;
    json[base::StrCat("median_", name, "_ms")] = values.median;
    json[base::StrCat("std_", name, "_ms")] = values.std;
    for (const auto& [percent, value] : values.percentiles)
      json[base::StrCat("p", PercentWord(percent), "_", name, "_ms")] = value;
  }
  return json;
}

}  // namespace vllm
