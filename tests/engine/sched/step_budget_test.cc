// StepBudget: prompt tokens of a step, learned from measured times.
#include "engine/sched/step_budget.h"

#include <gtest/gtest.h>

namespace vllm {
namespace {

constexpr int64_t kTarget = 200'000;

// A machine whose steps take so long, decoding included.
int64_t StepUs(int64_t prompt_tokens, int64_t fixed_us, int64_t token_us) {
  return fixed_us + prompt_tokens * token_us;
}

TEST(StepBudget, FindsTheTokensThatFillTheTarget) {
  for (const int64_t token_us : {100, 1'000, 5'000}) {
    StepBudget budget(kTarget);
    for (int step = 0; step < 50; ++step) {
      const int64_t tokens = budget.PromptTokens(true);
      budget.Observe(true, tokens, StepUs(tokens, 20'000, token_us));
    }
    const int64_t tokens = budget.PromptTokens(true);
    EXPECT_LE(StepUs(tokens, 20'000, token_us), kTarget + token_us);
    EXPECT_GE(StepUs(tokens + 2, 20'000, token_us), kTarget) << "as many as fit";
  }
}

TEST(StepBudget, KeepsALeastNumberWhereEvenThatIsTooSlow) {
  StepBudget budget(kTarget);
  for (int step = 0; step < 50; ++step) budget.Observe(true, budget.PromptTokens(true), 10 * kTarget);
  EXPECT_EQ(budget.PromptTokens(true), StepBudget::kLeast);
}

TEST(StepBudget, StepsWithoutDecodingTakeLonger) {
  StepBudget budget(kTarget);
  for (int step = 0; step < 50; ++step) {
    const int64_t tokens = budget.PromptTokens(false);
    budget.Observe(false, tokens, StepUs(tokens, 0, 1'000));
  }
  EXPECT_EQ(budget.PromptTokens(true), 200);
  EXPECT_EQ(budget.PromptTokens(false), 200 * StepBudget::kAloneFactor);
}

TEST(StepBudget, AStepShortOfPromptsDoesNotLowerIt) {
  StepBudget budget(kTarget);
  budget.Observe(true, 3, 30'000);
  EXPECT_EQ(budget.PromptTokens(true), StepBudget::kFirst);
  budget.Observe(true, 64, 20'000);
  const int64_t tokens = budget.PromptTokens(true);
  ASSERT_EQ(tokens, 640);
  budget.Observe(true, 3, 30'000);  // the fixed costs alone
  EXPECT_EQ(budget.PromptTokens(true), tokens);
  budget.Observe(true, 0, 30'000);
  EXPECT_EQ(budget.PromptTokens(true), tokens);
}

TEST(StepBudget, OneStepHalvesOrDoublesItAtMost) {
  StepBudget budget(kTarget);
  budget.Observe(true, 400, kTarget);
  budget.Observe(true, 400, 1'000 * kTarget);
  EXPECT_EQ(budget.PromptTokens(true), 200);
  budget.Observe(true, 200, 1);
  EXPECT_EQ(budget.PromptTokens(true), 400);
}

}  // namespace
}  // namespace vllm
