// The inner loops over a row of logits as a table of functions, compiled for several instruction sets. All give the
// same bits: products and sums are rounded one by one, and long sums have the same shape for every width of vector.
#pragma once
#include <cstdint>

namespace vllm {

// Plain functions of plain arguments, so that their units see no library code. Thread-safe. Rows hold no NaN unless
// said otherwise.
struct RowPasses {
  // The largest element that is no NaN, -inf without one; `has_nan` tells whether there was a NaN.
  float (*max_of)(const float* x, int64_t n, bool* has_nan) = nullptr;
  // First place in [begin, n) with x >= bound, or n.
  int64_t (*next_at_least)(const float* x, int64_t begin, int64_t n, float bound) = nullptr;
  // First place in [begin, n) with x > bound, or n.
  int64_t (*next_above)(const float* x, int64_t begin, int64_t n, float bound) = nullptr;
  // Writes the places of elements >= bound to `places`, rising, and returns how many there are.
  int64_t (*places_at_least)(const float* x, int64_t n, float bound, int32_t* places) = nullptr;
  // Elements >= bound.
  int64_t (*count_at_least)(const float* x, int64_t n, float bound) = nullptr;
  // Sum of exp(x - max), and of that the part of elements with x - max >= -reach.
  double (*exp_sum)(const float* x, int64_t n, float max, float reach, double* near) = nullptr;
  // mass[i] = exp(x[i] - max), and bin[i] = min((max - x[i]) * bins_per_nat, last_bin) without its fraction.
  void (*masses)(const float* x, int64_t n, float max, float bins_per_nat, int32_t last_bin, float* mass,
                 int32_t* bin) = nullptr;
  void (*divide)(float* x, int64_t n, float divisor) = nullptr;
  // First place in [begin, n), a multiple of kNoiseGroup, from which kNoiseGroup elements follow one of which may reach
  // x - max + noise >= bound by an upper bound of its noise; n / kNoiseGroup * kNoiseGroup if there is none. `begin` is
  // a multiple of kNoiseGroup, `prefix` the hash of seed and position.
  int64_t (*next_noisy)(const float* x, int64_t begin, int64_t n, float max, uint32_t prefix, float bound) = nullptr;
};
inline constexpr int64_t kNoiseGroup = 8;

extern const RowPasses kRowPassesBase;
extern const RowPasses kRowPassesAvx2;

// The best that this machine runs.
const RowPasses& BestRowPasses();

}  // namespace vllm
