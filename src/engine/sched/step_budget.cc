// How many prompt tokens a step may compute, so that sequences that decode get their next tokens in time.
#include "engine/sched/step_budget.h"

#include <algorithm>
#include <utility>

namespace vllm {
namespace {

// One step may be slow by chance, so no observation but the first changes the number by more than this factor.
constexpr double kMostChange = 2;
// Of the allowance: a step with less was short of prompts, and its time says little about longer ones.
constexpr double kFull = 0.75;
// Beyond every model's context, and far from overflow.
constexpr double kMost = 1 << 30;

}  // namespace

int64_t StepBudget::PromptTokens(bool decodes) const {
  return static_cast<int64_t>(prompt_tokens_) * (decodes ? 1 : kAloneFactor);
}

void StepBudget::Observe(bool decodes, int64_t prompt_tokens, int64_t elapsed_us) {
  // The first few tokens tell more of the fixed costs, and of memory that is touched for the first time.
  if (prompt_tokens <= 0 || elapsed_us <= 0 || (!measured_ && prompt_tokens < kLeast)) return;
  const auto target = static_cast<double>(target_us_), tokens = static_cast<double>(prompt_tokens);
  // A step has fixed costs too, so this errs towards too few tokens when there were few, and the next step corrects it.
  const double implied = tokens * target / static_cast<double>(elapsed_us);
  if (!std::exchange(measured_, true)) {
    prompt_tokens_ = std::clamp(implied, static_cast<double>(kLeast), kMost);
    return;
  }
  if (implied > prompt_tokens_) {
    prompt_tokens_ = std::min({implied, prompt_tokens_ * kMostChange, kMost});
    return;
  }
  const int64_t factor = decodes ? 1 : kAloneFactor;
  const bool full = tokens >= kFull * prompt_tokens_ * static_cast<double>(factor);
  if (full || elapsed_us > target_us_ * factor) {
    prompt_tokens_ = std::max({implied, prompt_tokens_ / kMostChange, static_cast<double>(kLeast)});
  }
}

}  // namespace vllm
