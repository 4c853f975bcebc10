// Simulates the scheduler and the KV cache manager: random steps in search of a fault, or a server's load to predict
// its throughput.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "engine/config.h"
#include "engine/sched/scheduler_config.h"
#include "tests/engine/sched/prediction_util.h"
#include "tests/engine/sched/simulation_util.h"

namespace vllm {
namespace {

constexpr const char* kUsage = R"(usage: sim [--seeds N] [--steps N] [--seed S] [--threads N] [--log]
  Random steps through the scheduler and the KV cache manager, in search of a fault.
  --seeds N     how many configurations (1000)
  --steps N     steps of each (10000)
  --seed S      the first of them; alone: only that one
  --threads N   at once (all processors)
  --log         a line for each step, on one thread

usage: sim --predict TRACE ...
  How a server does under load, from the step times that it recorded with VLLM_TRACE=TRACE.
  --num-prompts N (10000), --request-rate R (all at once), --max-concurrency N (no limit),
  --random-input-len N (128), --random-output-len N (128), --random-range-ratio R (0), --random-prefix-len N (0),
  --seed S (1)  as of vllm bench serve
  --max-num-seqs N, --max-num-batched-tokens N, --itl-target-ms R, --max-model-len N (2048), --block-size N,
  --num-gpu-blocks-override N (room for all)  as of vllm serve
)";

struct Options {
  std::optional<uint64_t> seed = {}, num_seeds = {};
  uint64_t num_steps = 10000;
  unsigned num_threads = std::max(1u, std::thread::hardware_concurrency());
  bool log = false;

  std::string trace = {};  // to predict from
  Traffic traffic = {};
  EngineConfig engine = {};
  int64_t max_model_len = 2048;
};

double Number(const std::string& name, const std::string& text) {
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || !(value >= 0)) {
    throw std::invalid_argument(base::StrCat(name, " '", text, "' is not a number from 0 up"));
  }
  return value;
}

Options Parse(const std::vector<std::string>& args) {
  Options options;
  Traffic& traffic = options.traffic;
  EngineConfig& engine = options.engine;
  const auto whole = [](auto& target) {
    return [&target](double value) { target = static_cast<std::decay_t<decltype(target)>>(value); };
  };
  const auto optional = [](auto& target) { return [&target](double value) { target = static_cast<int64_t>(value); }; };
  const std::map<std::string, std::function<void(double)>> setters = {
      {"--seed", optional(options.seed)},
      {"--seeds", optional(options.num_seeds)},
      {"--steps", whole(options.num_steps)},
      {"--threads", [&](double value) { options.num_threads = std::max(1u, static_cast<unsigned>(value)); }},
      {"--num-prompts", whole(traffic.num_requests)},
      {"--request-rate", whole(traffic.requests_per_s)},
      {"--max-concurrency", whole(traffic.max_concurrency)},
      {"--random-input-len", whole(traffic.input_len)},
      {"--random-output-len", whole(traffic.output_len)},
      {"--random-range-ratio", whole(traffic.range_ratio)},
      {"--random-prefix-len", whole(traffic.prefix_len)},
      {"--max-num-seqs", whole(engine.max_num_seqs)},
      {"--max-num-batched-tokens", optional(engine.max_num_batched_tokens)},
      {"--itl-target-ms", whole(engine.itl_target_ms)},
      {"--max-model-len", whole(options.max_model_len)},
      {"--block-size", whole(engine.block_size)},
      {"--num-gpu-blocks-override", optional(engine.num_gpu_blocks_override)},
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--log") {
      options.log = true;
      continue;
    }
    const auto setter = setters.find(args[i]);
    if (setter == setters.end() && args[i] != "--predict") {
      throw std::invalid_argument(base::StrCat("unknown argument '", args[i], "'"));
    }
    if (i + 1 == args.size()) throw std::invalid_argument(args[i] + " needs a value");
    const std::string& name = args[i++];
    if (setter == setters.end()) {
      options.trace = args[i];
    } else {
      setter->second(Number(name, args[i]));
    }
  }
  if (options.log) options.num_threads = 1;
  return options;
}

void Add(SimulationReport& sum, const SimulationReport& report) {
  sum.steps += report.steps;
  sum.tokens += report.tokens;
  sum.ended += report.ended;
  sum.cancelled += report.cancelled;
  sum.failed += report.failed;
  sum.timed_out += report.timed_out;
  sum.refused += report.refused;
  sum.preemptions += report.preemptions;
  sum.hit_tokens += report.hit_tokens;
  sum.resets += report.resets;
  sum.drafts_accepted += report.drafts_accepted;
  sum.longest_wait = std::max(sum.longest_wait, report.longest_wait);
}

void PrintFailure(const SimulationSetup& setup, const SimulationReport& report, uint64_t num_steps) {
  std::printf("seed %llu fails at step %llu\n  %s\n  configuration: %s\n  again: ./dev sim --seed %llu --steps %llu\n",
              static_cast<unsigned long long>(setup.seed), static_cast<unsigned long long>(report.steps),
              report.failure->c_str(), setup.Describe().c_str(), static_cast<unsigned long long>(setup.seed),
              static_cast<unsigned long long>(num_steps));
  std::fflush(stdout);
}

int RunSimulations(const Options& options) {
  const uint64_t first_seed = options.seed.value_or(1), num_seeds = options.num_seeds.value_or(options.seed ? 1 : 1000);
  const auto start = std::chrono::steady_clock::now();
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  SimulationReport sum;
  uint64_t num_failures = 0;
  const auto work = [&] {
    for (uint64_t i = next.fetch_add(1); i < num_seeds; i = next.fetch_add(1)) {
      const SimulationSetup setup = DrawSimulationSetup(first_seed + i);
      const SimulationReport report =
          Simulate(setup, options.num_steps, Fault::kNone, options.log ? &std::cout : nullptr);
      const std::lock_guard lock(mutex);
      Add(sum, report);
      if (!report.failure) continue;
      ++num_failures;
      PrintFailure(setup, report, options.num_steps);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < options.num_threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto print = [](const char* name, uint64_t value) {
    std::printf(" %llu %s", static_cast<unsigned long long>(value), name);
  };
  std::printf("of");
  print("requests", sum.ended);
  print("were cancelled,", sum.cancelled);
  print("failed,", sum.failed);
  print("timed out;", sum.timed_out);
  print("prompts refused,", sum.refused);
  print("preemptions,", sum.preemptions);
  print("tokens computed,", sum.tokens);
  print("found in the prefix cache,", sum.hit_tokens);
  print("resets,", sum.resets);
  print("drafts accepted;", sum.drafts_accepted);
  std::printf(" the longest wait was %.2f of its bound\n", sum.longest_wait);
  std::printf("%llu seeds, %llu steps in %.1f s, %.0f steps/s: %llu failures\n",
              static_cast<unsigned long long>(num_seeds), static_cast<unsigned long long>(sum.steps), seconds,
              static_cast<double>(sum.steps) / seconds, static_cast<unsigned long long>(num_failures));
  return num_failures == 0 ? 0 : 1;
}

void PrintLatency(const char* name, std::span<const double> values) {
  if (values.empty()) return;
  std::printf("%s ms: p50 %.1f, p90 %.1f, p99 %.1f\n", name, PercentileOf(values, 50), PercentileOf(values, 90),
              PercentileOf(values, 99));
}

int RunPrediction(const Options& options) {
  const std::vector<StepTime> steps = ReadStepTimes(options.trace);
  const StepTimeModel model = StepTimeModel::Fit(steps);
  std::printf("%zu steps: %s; a step takes %.2f (p10) to %.2f (p90) of that\n", steps.size(), model.Describe().c_str(),
              PercentileOf(model.ratios(), 10), PercentileOf(model.ratios(), 90));
  const int block_size = options.engine.block_size;
  const int64_t all = options.engine.max_num_seqs * ((options.max_model_len + block_size - 1) / block_size) + 1;
  const KvCacheConfig kv{.num_blocks = options.engine.num_gpu_blocks_override.value_or(all),
                         .groups = {{.spec = {.block_size = block_size, .kv_heads = 1, .head_dim = 1}, .layers = {0}}},
                         .layer_slots = 1};
  Traffic traffic = options.traffic;
  traffic.seed = options.seed.value_or(1);
  const auto start = std::chrono::steady_clock::now();
  const Prediction prediction = Predict(MakeSchedulerConfig(options.engine, options.max_model_len), kv, model, traffic);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%lld requests in %.1f s (found in %.1f s), %lld steps, %lld preemptions, %lld tokens from the cache\n",
              static_cast<long long>(traffic.num_requests), prediction.seconds, seconds,
              static_cast<long long>(prediction.steps), static_cast<long long>(prediction.preemptions),
              static_cast<long long>(prediction.hit_tokens));
  std::printf("%.2f requests/s, %.1f output tokens/s, %.1f tokens/s\n",
              static_cast<double>(traffic.num_requests) / prediction.seconds,
              static_cast<double>(prediction.output_tokens) / prediction.seconds,
              static_cast<double>(prediction.input_tokens + prediction.output_tokens) / prediction.seconds);
  PrintLatency("time to first token,", prediction.ttft_ms);
  PrintLatency("between tokens,", prediction.itl_ms);
  return 0;
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (std::find(args.begin(), args.end(), "--help") != args.end()) {
    std::fputs(vllm::kUsage, stdout);
    return 0;
  }
  try {
    const vllm::Options options = vllm::Parse(args);
    return options.trace.empty() ? vllm::RunSimulations(options) : vllm::RunPrediction(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sim: %s\n%s", e.what(), vllm::kUsage);
    return 2;
  }
}
