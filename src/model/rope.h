// Rotary tables: the inverse frequencies of a spec's rope, scaled as transformers' modeling_rope_utils does.
#pragma once
#include <span>

#include "model/spec.h"
#include "vt/ops.h"

namespace vllm {

// `factors` (may be empty; else rope.dim / 2 of them) divide the frequencies, as GGUF's rope_freqs tensor says.
// Computed in double and stored as float. Throws nothing; CHECKs an odd dimension.
vt::RopeTable MakeRopeTable(const spec::Rope& rope, int max_position, std::span<const float> factors);

}  // namespace vllm
