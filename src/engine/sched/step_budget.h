// How many prompt tokens a step may compute, so that sequences that decode get their next tokens in time.
#pragma once
#include <cstdint>

namespace vllm {

// Learns from measured steps: a step's time grows by its prompt tokens, so after each the number is scaled by what the
// target is of the time. Prompts that nobody's decoding waits for may take kAloneFactor times the target, since they
// hold up only other prompts. Engine thread only.
class StepBudget {
 public:
  static constexpr int64_t kLeast = 32, kFirst = 64;  // prompt tokens of a step: never fewer; before any was measured
  static constexpr int64_t kAloneFactor = 4;
  // Of a prompt that is the only one, whatever it takes: fewer would waste the processor's time.
  static constexpr int64_t kLeastAlone = 512;

  // target_us: what a step with decoding sequences should take at most, above 0.
  explicit StepBudget(int64_t target_us) : target_us_(target_us) {}

  // Prompt tokens for the next step.
  int64_t PromptTokens(bool decodes) const;
  // A step has run: `prompt_tokens` beside, or without, sequences that decode.
  void Observe(bool decodes, int64_t prompt_tokens, int64_t elapsed_us);

 private:
  int64_t target_us_;
  double prompt_tokens_ = kFirst;
  bool measured_ = false;
};

}  // namespace vllm
