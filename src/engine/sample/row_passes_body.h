// The passes over lanes; a unit includes this and defines its table.
#pragma once
#include <cstdint>

#include "engine/sample/lanes.h"
#include "engine/sample/noise_hash.h"
#include "engine/sample/row_passes.h"

namespace vllm {
namespace {

constexpr float kMinusInf = -__builtin_inff();

float MaxOf(const float* x, int64_t n, bool* has_nan) {
  Floats best[4] = {Fill(kMinusInf), Fill(kMinusInf), Fill(kMinusInf), Fill(kMinusInf)};
  Ints nan = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) {
      const Floats v = Load(x + i + j * kLanes);
      nan |= v != v;
      best[j] = Max(v, best[j]);
    }
  }
  float max = kMinusInf;
  *has_nan = Bits(nan) != 0;
  for (const Floats& lanes : best) {
    for (int lane = 0; lane < kLanes; ++lane) max = lanes[lane] > max ? lanes[lane] : max;
  }
  for (; i < n; ++i) {
    if (x[i] != x[i]) *has_nan = true;
    if (x[i] > max) max = x[i];
  }
  return max;
}

// First place in [begin, n) where `holds`, told of lanes and of floats, or n.
template <class Holds>
inline __attribute__((always_inline)) int64_t NextWhere(const float* x, int64_t i, int64_t n, Holds holds) {
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    const float* p = x + i;
    const Ints a = holds(Load(p)), b = holds(Load(p + kLanes));
    const Ints c = holds(Load(p + 2 * kLanes)), d = holds(Load(p + 3 * kLanes));
    if (Bits((a | b) | (c | d)) == 0) [[likely]]
      continue;
    const uint32_t bits =
        Bits(a) | Bits(b) << kLanes | Bits(c) << (2 * kLanes) | static_cast<uint32_t>(Bits(d)) << (3 * kLanes);
    return i + __builtin_ctz(bits);
  }
  for (; i < n; ++i) {
    if (holds(Fill(x[i]))[0]) return i;
  }
  return n;
}

int64_t NextAtLeast(const float* x, int64_t begin, int64_t n, float bound) {
  const Floats least = Fill(bound);
  return NextWhere(x, begin, n, [&](Floats v) { return v >= least; });
}

int64_t NextAbove(const float* x, int64_t begin, int64_t n, float bound) {
  const Floats below = Fill(bound);
  return NextWhere(x, begin, n, [&](Floats v) { return v > below; });
}

int64_t PlacesAtLeast(const float* x, int64_t n, float bound, int32_t* places) {
  const Floats least = Fill(bound);
  int64_t count = 0, i = 0;
  const auto take = [&]() __attribute__((always_inline)) {
    for (uint32_t bits = Bits(Load(x + i) >= least); bits != 0; bits &= bits - 1)
      places[count++] = static_cast<int32_t>(i) + __builtin_ctz(bits);
    i += kLanes;
  };
  while (i + 4 * kLanes <= n) {
    const Ints low = (Load(x + i) >= least) | (Load(x + i + kLanes) >= least);
    const Ints high = (Load(x + i + 2 * kLanes) >= least) | (Load(x + i + 3 * kLanes) >= least);
    if (Bits(low | high) == 0) {
      i += 4 * kLanes;
    } else {
      for (int j = 0; j < 4; ++j) take();
    }
  }
  while (i + kLanes <= n) take();
  for (; i < n; ++i) {
    if (x[i] >= bound) places[count++] = static_cast<int32_t>(i);
  }
  return count;
}

int64_t CountAtLeast(const float* x, int64_t n, float bound) {
  Ints count = {};
  int64_t i = 0, total = 0;
  for (; i + kLanes <= n; i += kLanes) count -= Load(x + i) >= Fill(bound);
  for (int lane = 0; lane < kLanes; ++lane) total += count[lane];
  for (; i < n; ++i) total += x[i] >= bound;
  return total;
}

// Eight partial sums whatever the width, added up in double every 32 steps: short float sums keep the error of a
// quarter-million additions below that of one.
double ExpSum(const float* x, int64_t n, float max, float reach, double* near) {
  constexpr int kSums = 8, kVectors = kSums / kLanes, kSteps = 32;
  const Floats floor = Fill(-reach);
  double sum = 0, near_sum = 0;
  int64_t i = 0;
  while (i + kSums <= n) {
    Floats partial[kVectors] = {}, near_partial[kVectors] = {};
    const int64_t whole = n / kSums * kSums, end = whole < i + kSteps * kSums ? whole : i + kSteps * kSums;
    for (; i < end; i += kSums) {
      for (int j = 0; j < kVectors; ++j) {
        const Floats distance = Load(x + i + j * kLanes) - max, e = ExpNonPositive(distance);
        partial[j] += e;
        near_partial[j] += Select(distance >= floor, e, Floats{});
      }
    }
    for (int j = 0; j < kSums; ++j) {
      sum += static_cast<double>(partial[j / kLanes][j % kLanes]);
      near_sum += static_cast<double>(near_partial[j / kLanes][j % kLanes]);
    }
  }
  for (; i < n; ++i) {
    const double e = static_cast<double>(ExpNonPositive(Fill(x[i] - max))[0]);
    sum += e;
    if (x[i] - max >= -reach) near_sum += e;
  }
  *near = near_sum;
  return sum;
}

void Masses(const float* x, int64_t n, float max, float bins_per_nat, int32_t last_bin, float* mass, int32_t* bin) {
  const Floats last = Fill(static_cast<float>(last_bin));
  const auto one = [&](Floats v, Floats* m, Ints* b) __attribute__((always_inline)) {
    const Floats scaled = (max - v) * bins_per_nat;
    *m = ExpNonPositive(-(max - v));
    *b = __builtin_convertvector(Select(scaled < last, scaled, last), Ints);
  };
  Floats m;
  Ints b;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    one(Load(x + i), &m, &b);
    Store(mass + i, m);
    std::memcpy(bin + i, &b, sizeof b);
  }
  for (; i < n; ++i) {
    one(Fill(x[i]), &m, &b);
    mass[i] = m[0], bin[i] = b[0];
  }
}

void Divide(float* x, int64_t n, float divisor) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(x + i, Load(x + i) / Fill(divisor));
  for (; i < n; ++i) x[i] /= divisor;
}

int64_t NextNoisy(const float* x, int64_t begin, int64_t n, float max, uint32_t prefix, float bound) {
  const Uints shared = FillU(prefix);
  const Floats least = Fill(bound);
  int64_t i = begin;
  for (; i + kNoiseGroup <= n; i += kNoiseGroup) {
    Ints reaches = {};
    for (int j = 0; j < kNoiseGroup; j += kLanes) {
      const Uints bits = Finish<Uints>(Mix<Uints>(shared, Count(static_cast<uint32_t>(i + j))));
      reaches |= (Load(x + i + j) - max) + NoiseBound(bits) >= least;
    }
    if (Bits(reaches) != 0) [[unlikely]]
      return i;
  }
  return i;
}

constexpr RowPasses kTable = {MaxOf,  NextAtLeast, NextAbove, PlacesAtLeast, CountAtLeast,
                              ExpSum, Masses,      Divide,    NextNoisy};

}  // namespace
}  // namespace vllm
