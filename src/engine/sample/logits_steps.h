// Steps 0 to 4 of sampling, in place on one row: grammar mask, allowed ids, bias, min_tokens, penalties, bad words.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/sample/sampler.h"

namespace vllm {

// Step 0. Raw logprobs include it, so it comes before everything else.
void ApplyAllowedMask(std::span<float> logits, std::span<const uint32_t> allowed_mask);

// Whether ApplyLogitsSteps would change anything of this row.
bool NeedsLogitsSteps(const SampleRow& row);
// Steps 2 to 4. Ids outside the row are ignored (prompts may hold ids of padding rows that the model does not score).
void ApplyLogitsSteps(const SampleRow& row);

}  // namespace vllm
