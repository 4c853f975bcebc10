// min_p, top_k and top_p over one temperature-scaled row, as a list of the tokens that stay.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/sample/row_math.h"

namespace vllm {

struct Truncation {
  int top_k = 0;    // 0: off
  float top_p = 1;  // 1: off
  float min_p = 0;  // 0: off
  bool any(size_t vocab) const { return (top_k > 0 && static_cast<size_t>(top_k) < vocab) || top_p != 1 || min_p != 0; }
};

// The tokens left after min_p, then top_k (ties with the k-th stay), then top_p over what is left. At least the
// likeliest stays. `max` is the row's maximum and finite; the row holds no NaN. Order: unspecified.
std::vector<Candidate> Truncate(std::span<const float> row, float max, const Truncation& truncation);

}  // namespace vllm
