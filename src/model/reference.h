// The slow oracle of a spec: one sequence, no cache, double precision, no code shared with the plan.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/bind/bind.h"
#include "model/spec.h"

namespace vllm {

// Logits [tokens, vocab] of every position. Quadratic in the tokens; for tests.
std::vector<float> ReferenceLogits(const spec::Model& model, const Bindings& bindings, std::span<const int32_t> tokens);

}  // namespace vllm
