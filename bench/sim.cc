// Simulates the scheduler and the KV cache manager: ten million random steps in search of a fault.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "tests/engine/sched/simulation_util.h"

namespace vllm {
namespace {

constexpr const char* kUsage = R"(usage: sim [--seeds N] [--steps N] [--seed S] [--threads N] [--log]
  --seeds N     how many configurations (1000)
  --steps N     steps of each (10000)
  --seed S      the first of them; alone: only that one
  --threads N   at once (all processors)
  --log         a line for each step, on one thread
)";

struct Options {
  uint64_t first_seed = 1, num_seeds = 1000, num_steps = 10000;
  unsigned num_threads = std::max(1u, std::thread::hardware_concurrency());
  bool log = false;
};

uint64_t Number(const std::vector<std::string>& args, size_t& i) {
  const std::string& name = args[i];
  if (++i == args.size()) throw std::invalid_argument(name + " needs a number");
  size_t used = 0;
  uint64_t value = 0;
  try {
    value = std::stoull(args[i], &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != args[i].size()) throw std::invalid_argument(name + " '" + args[i] + "' is no number");
  return value;
}

Options Parse(const std::vector<std::string>& args) {
  Options options;
  bool one = false, many = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--seeds") {
      options.num_seeds = Number(args, i);
      many = true;
    } else if (args[i] == "--steps") {
      options.num_steps = Number(args, i);
    } else if (args[i] == "--seed") {
      options.first_seed = Number(args, i);
      one = true;
    } else if (args[i] == "--threads") {
      options.num_threads = static_cast<unsigned>(std::max<uint64_t>(1, Number(args, i)));
    } else if (args[i] == "--log") {
      options.log = true;
    } else {
      throw std::invalid_argument("unknown argument '" + args[i] + "'");
    }
  }
  if (one && !many) options.num_seeds = 1;
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

int Run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  SimulationReport sum;
  uint64_t num_failures = 0;
  const auto work = [&] {
    for (uint64_t i = next.fetch_add(1); i < options.num_seeds; i = next.fetch_add(1)) {
      const SimulationSetup setup = DrawSimulationSetup(options.first_seed + i);
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
              static_cast<unsigned long long>(options.num_seeds), static_cast<unsigned long long>(sum.steps), seconds,
              static_cast<double>(sum.steps) / seconds, static_cast<unsigned long long>(num_failures));
  return num_failures == 0 ? 0 : 1;
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
    return vllm::Run(vllm::Parse(args));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sim: %s\n%s", e.what(), vllm::kUsage);
    return 2;
  }
}
