// The simulation finds nothing in the scheduler, and finds each fault that is planted in it. ./dev sim runs it longer.
#include <gtest/gtest.h>

#include <regex>

#include "tests/engine/sched/simulation_util.h"

namespace vllm {
namespace {

TEST(Simulator, FindsNoFaultAndMeetsEverySituation) {
  SimulationReport sum;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const SimulationReport report = Simulate(DrawSimulationSetup(seed), 500);
    ASSERT_FALSE(report.failure.has_value())
        << *report.failure << "\nseed " << seed << ": " << DrawSimulationSetup(seed).Describe();
    ASSERT_GE(report.steps, 500u);
    sum.ended += report.ended, sum.cancelled += report.cancelled, sum.failed += report.failed;
    sum.timed_out += report.timed_out, sum.refused += report.refused, sum.preemptions += report.preemptions;
    sum.hit_tokens += report.hit_tokens, sum.resets += report.resets, sum.drafts_accepted += report.drafts_accepted;
  }
  EXPECT_GT(sum.ended, 10000u);
  EXPECT_GT(sum.cancelled, 1000u);
  EXPECT_GT(sum.failed, 100u);
  EXPECT_GT(sum.timed_out, 10u);
  EXPECT_GT(sum.refused, 10u);
  EXPECT_GT(sum.preemptions, 500u);
  EXPECT_GT(sum.hit_tokens, 10000u);
  EXPECT_GT(sum.resets, 100u);
  EXPECT_GT(sum.drafts_accepted, 1000u);
}

TEST(Simulator, RepeatsARunExactly) {
  const SimulationSetup setup = DrawSimulationSetup(4);
  const SimulationReport first = Simulate(setup, 400), second = Simulate(setup, 400);
  EXPECT_EQ(first.tokens, second.tokens);
  EXPECT_EQ(first.ended, second.ended);
  EXPECT_EQ(first.hit_tokens, second.hit_tokens);
}

// ---- seeds that have found faults ----

struct Regression {
  const char* name;  // what it found
  uint64_t seed, num_steps;
};

class SimulatorRegression : public testing::TestWithParam<Regression> {};

TEST_P(SimulatorRegression, StaysMended) {
  const SimulationReport report = Simulate(DrawSimulationSetup(GetParam().seed), GetParam().num_steps);
  EXPECT_FALSE(report.failure.has_value()) << *report.failure;
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimulatorRegression,
                         testing::Values(Regression{"ErrorsReportNoPreemptions", 8, 300},
                                         Regression{"AThresholdCutsPaddedDrafts", 154, 1600},
                                         Regression{"ALoneSequencePreemptsItselfForEver", 56, 300}),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- planted faults ----

struct Planted {
  const char* name;
  Fault fault;
  const char* says;
};

class SimulatorFault : public testing::TestWithParam<Planted> {};

TEST_P(SimulatorFault, IsFound) {
  const std::regex says(GetParam().says);
  int found = 0, named = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const SimulationReport report = Simulate(DrawSimulationSetup(seed), 1500, GetParam().fault);
    if (!report.failure) continue;  // no occasion came up
    ++found;
    // What else goes wrong because of it may be noticed first.
    if (std::regex_search(*report.failure, says)) ++named;
  }
  EXPECT_GT(found, 4);
  EXPECT_GE(2 * named, found);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, SimulatorFault,
    testing::Values(Planted{"DoubleFree", Fault::kDoubleFree, "block [0-9]+ has [0-9]+ references, [0-9]+ holders"},
                    Planted{"LostBlock", Fault::kLostBlock, "block [0-9]+ has 1 references, 0 holders"},
                    Planted{"StaleHash", Fault::kStaleHash,
                            "block [0-9]+ (is found by the hash of other tokens than it holds|has a hash already)"},
                    Planted{"Starvation", Fault::kStarvation, "starves|nothing can be scheduled|have not ended"},
                    Planted{"WrongOrder", Fault::kWrongOrder, "request [0-9]+ overtakes request [0-9]+"},
                    Planted{"WrongOutput", Fault::kWrongOutput,
                            "output [0-9]+ is [0-9]+, and [0-9]+ follows what came before"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace vllm
