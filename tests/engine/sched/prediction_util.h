// Predicts how a server does under load: step times recorded by a real engine become a formula, and the real scheduler
// runs requests by a clock that follows it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/run/model_runner.h"
#include "engine/sched/scheduler_config.h"
#include "engine/sched/step_load.h"

namespace vllm {

struct StepTime {
  StepLoad load = {};
  int64_t elapsed_us = 0;
};

// The steps of a trace (VLLM_TRACE). Throws base::Exception naming the file if it cannot be read or has no steps.
std::vector<StepTime> ReadStepTimes(const std::string& path);

// A step's time as a sum of terms, none of which can make it shorter: a constant (the weights are read), tokens with
// one price for each range of their number, samples, context and attended pairs.
class StepTimeModel {
 public:
  // Least squares with non-negative prices, each step weighted by the inverse of its time. CHECKs that there are steps.
  static StepTimeModel Fit(std::span<const StepTime> steps);

  double Us(const StepLoad& load) const;
  // Measured time over Us, of each step in rising order: how far steps of the same load differ.
  std::span<const double> ratios() const { return ratios_; }
  std::string Describe() const;

 private:
  // Tokens up to each bound, and then beyond the last, have a price of their own.
  static constexpr std::array<int64_t, 4> kBounds = {4, 16, 64, 256};
  static constexpr size_t kTerms = 1 + kBounds.size() + 1 + 3;
  using Terms = std::array<double, kTerms>;
  static Terms TermsOf(const StepLoad& load);

  Terms prices_ = {};
  std::vector<double> ratios_ = {};
};

struct Traffic {
  int64_t num_requests = 10000;
  double requests_per_s = 0;    // Poisson arrivals; 0: all at once
  int64_t max_concurrency = 0;  // clients that wait for an end before they send the next; 0: no limit
  // Uniform from (1 - range_ratio) to (1 + range_ratio) of the length.
  int64_t input_len = 128, output_len = 128;
  double range_ratio = 0;
  int64_t prefix_len = 0;  // tokens before each prompt, the same for all
  uint64_t seed = 1;
};

struct Prediction {
  double seconds = 0;  // from the first arrival to the last token
  int64_t steps = 0, input_tokens = 0, output_tokens = 0, preemptions = 0, hit_tokens = 0;
  std::vector<double> ttft_ms = {}, itl_ms = {};  // in rising order
};

// The value below which that percentage lies. CHECKs that there is one.
double PercentileOf(std::span<const double> sorted, double percent);

// Runs the real scheduler. Throws base::Exception for a contradictory config and for requests that can never run.
Prediction Predict(const SchedulerConfig& config, const KvCacheConfig& kv, const StepTimeModel& model,
                   const Traffic& traffic);

}  // namespace vllm
