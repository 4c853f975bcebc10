// vllm bench latency and throughput: vLLM's fields, defaults and lines; prompts are random token ids.
#include "app/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "app/commands.h"
#include "app/session.h"
#include "base/strings.h"

namespace vllm {
namespace {

using base::ErrorCode;

constexpr int kPercentiles[] = {10, 25, 50, 75, 90, 99};
constexpr int64_t kMostRandomId = 10000;  // vLLM draws from the first ten thousand ids

int64_t AtLeastOne(const base::Options& options, std::string_view name, int64_t fallback) {
  const int64_t value = options.Int(name, fallback);
  if (value < 1 || value > 1 << 24) options.Refuse(name, "is not in 1 .. 16777216");
  return value;
}

struct Load {
  int64_t requests = 0, input_len = 0, output_len = 0;
  int n = 1;
  bool detokenize = true;
};

Load ReadLoad(const base::Options& options, int64_t requests) {
  return {.requests = requests,
          .input_len = AtLeastOne(options, "input_len", 32),
          .output_len = AtLeastOne(options, "output_len", 128),
          .n = static_cast<int>(AtLeastOne(options, "n", 1)),
          .detokenize = !options.Bool("disable_detokenize", false)};
}

std::vector<GenerateRequest> RandomRequests(const Load& load, int64_t vocab_size, std::mt19937_64& random) {
  std::uniform_int_distribution<int32_t> id(0, static_cast<int32_t>(std::min(kMostRandomId, vocab_size) - 1));
  std::vector<GenerateRequest> requests(load.requests);
  for (GenerateRequest& request : requests) {
    request.prompt_token_ids.resize(load.input_len);
    for (int32_t& token : request.prompt_token_ids) token = id(random);
    request.params.n = load.n;
    request.params.temperature = 1;
    request.params.ignore_eos = true;
    request.params.max_tokens = load.output_len;
    request.params.detokenize = load.detokenize;
  }
  return requests;
}

void CheckFits(const LlmEngine& engine, const Load& load) {
  if (load.input_len + load.output_len <= engine.info().max_model_len) return;
  base::Throw(ErrorCode::kInvalidArgument, "--input-len ", load.input_len, " and --output-len ", load.output_len,
              " exceed the context of ", engine.info().max_model_len, " tokens; give a larger --max-model-len or less");
}

double SecondsFor(LlmEngine& engine, std::vector<GenerateRequest> requests, int64_t* tokens = nullptr) {
  const size_t all = requests.size();
  const auto start = std::chrono::steady_clock::now();
  const int64_t generated = GenerateAll(engine, std::move(requests), all);
  if (tokens) *tokens = generated;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void WriteResults(const base::Options& options, const base::Json& results) {
  const std::string path = options.String("output_json", "");
  if (path.empty()) return;
  std::ofstream out(path);
  out << results.dump(4, ' ', false, base::Json::error_handler_t::replace);
  out.close();
  if (!out) base::Throw(ErrorCode::kInvalidArgument, "--output-json: '", path, "' cannot be written");
}

}  // namespace

double Percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  const double at = percent / 100 * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (at - static_cast<double>(below));
}

int RunLatency(const CommandLine& line) {
  const base::Options& options = line.options;
  const Load load = ReadLoad(options, AtLeastOne(options, "batch_size", 8));
  const int64_t warmups = options.Int("num_iters_warmup", 10);
  const int64_t rounds = AtLeastOne(options, "num_iters", 30);
  // Equal prompts in every round would be read from the prefix cache: off unless asked for, as in vLLM.
  constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {{"enable_prefix_caching", "false"}};
  const auto engine = OpenEngine(line, kDefaults);
  CheckFits(*engine, load);
  std::mt19937_64 random(static_cast<uint64_t>(options.Int("seed", 0)));
  const std::vector<GenerateRequest> requests = RandomRequests(load, engine->info().vocab_size, random);

  std::puts("Warming up...");
  for (int64_t i = 0; i < warmups; ++i) SecondsFor(*engine, requests);
  std::vector<double> latencies;
  for (int64_t i = 0; i < rounds; ++i) latencies.push_back(SecondsFor(*engine, requests));

  const double average = std::accumulate(latencies.begin(), latencies.end(), 0.0) / static_cast<double>(rounds);
  std::printf("Avg latency: %.6f seconds\n", average);
  base::Json percentiles = base::Json::object();
  for (const int percent : kPercentiles) {
    const double value = Percentile(latencies, percent);
    std::printf("%d%% percentile latency: %.6f seconds\n", percent, value);
    percentiles[base::StrCat(percent)] = value;
  }
  WriteResults(options, {{"model_id", options.String("model", "")},
                         {"avg_latency", average},
                         {"latencies", latencies},
                         {"percentiles", percentiles}});
  return 0;
}

int RunThroughput(const CommandLine& line) {
  const base::Options& options = line.options;
  const Load load = ReadLoad(options, AtLeastOne(options, "num_prompts", 1000));
  const int64_t warmups = options.Int("num_warmups", 0);
  const std::string queue = base::StrCat(std::max<int64_t>(load.requests, warmups) * load.n);
  const std::pair<std::string_view, std::string_view> defaults[] = {{"max_num_queued_reqs", queue}};
  const auto engine = OpenEngine(line, defaults);
  CheckFits(*engine, load);
  std::mt19937_64 random(static_cast<uint64_t>(options.Int("seed", 0)));
  Load warm = load;
  warm.requests = warmups;
  if (warmups > 0) SecondsFor(*engine, RandomRequests(warm, engine->info().vocab_size, random));

  int64_t output_tokens = 0;
  const double elapsed = SecondsFor(*engine, RandomRequests(load, engine->info().vocab_size, random), &output_tokens);
  const int64_t total_tokens = load.requests * load.input_len + output_tokens;
  std::printf("Throughput: %.2f requests/s, %.2f total tokens/s, %.2f output tokens/s\n",
              static_cast<double>(load.requests) / elapsed, static_cast<double>(total_tokens) / elapsed,
              static_cast<double>(output_tokens) / elapsed);
  std::printf("Total num prompt tokens:  %lld\n", static_cast<long long>(load.requests * load.input_len));
  std::printf("Total num output tokens:  %lld\n", static_cast<long long>(output_tokens));
  WriteResults(options, {{"model_id", options.String("model", "")},
                         {"elapsed_time", elapsed},
                         {"num_requests", load.requests},
                         {"total_num_tokens", total_tokens},
                         {"requests_per_second", static_cast<double>(load.requests) / elapsed},
                         {"tokens_per_second", static_cast<double>(total_tokens) / elapsed}});
  return 0;
}

}  // namespace vllm
