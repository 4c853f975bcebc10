// A step's load, counted by hand.
#include "engine/sched/step_load.h"

#include <gtest/gtest.h>

namespace vllm {
namespace {

TEST(StepLoad, CountsTokensSamplesAndWhatAttentionReads) {
  SchedulerOutput step;
  step.new_requests.push_back({.id = 7, .num_computed_tokens = 10});
  step.cached_requests.push_back({.id = 3, .num_computed_tokens = 99});
  step.scheduled.push_back({.id = 3, .num_tokens = 1, .samples = true});
  step.scheduled.push_back({.id = 7, .num_tokens = 4});
  const StepLoad load = LoadOf(step);
  EXPECT_EQ(load.tokens, 5);
  EXPECT_EQ(load.samples, 1);
  EXPECT_EQ(load.context, 100 + 14);
  EXPECT_EQ(load.attended, 100 + 11 + 12 + 13 + 14);
}

}  // namespace
}  // namespace vllm
