// What all kernels of the linear op share: reading rows of a format, writing sums. Included after simd_*.h and
// linear_formats.h by the unit of each instruction set; everything is internal to that unit.
#pragma once
#include "vt/cpu/linear_kernels.h"

namespace {

using vt::LinearPart;

// Columns that a kernel sums at once.
constexpr int kTileColumns = 4;

// Writes the four sums of one row of x; the first block of k stores, later ones add, the last adds the bias.
VT_INLINE void Finish(const LinearPart& part, int64_t row, int64_t column, int count, __m128 sums, bool first,
                      bool last) {
  float* y = part.y + row * part.y_stride + column;
  const float* bias = last && part.bias != nullptr ? part.bias + column : nullptr;
  if (count == 4) {
    if (!first) sums = _mm_add_ps(_mm_loadu_ps(y), sums);
    if (bias != nullptr) sums = _mm_add_ps(sums, _mm_loadu_ps(bias));
    _mm_storeu_ps(y, sums);
    return;
  }
  alignas(16) float values[4];
  _mm_store_ps(values, sums);
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i) {
    const float value = first ? values[i] : y[i] + values[i];
    y[i] = bias != nullptr ? value + bias[i] : value;
  }
}

template <class Format>
VT_INLINE const unsigned char* At(const unsigned char* row, int64_t k) {
  return row + k / Format::kBlock * Format::kBytes;
}

// Unpacks a whole row; `store(k, vector)` takes each vector in order. Float formats pad the tail to 32 with zeros.
template <class Format, class Store>
VT_INLINE void UnpackPadded(const unsigned char* row, int64_t k, Store&& store) {
  constexpr int kUnits = Format::kBlock / Format::kUnit, kVectors = Format::kUnit / kWidth;
  const auto block = [&](const unsigned char* bytes, int64_t at) __attribute__((always_inline)) {
    alignas(64) float scales[Format::kScales + 1];
    Format::Prepare(bytes, 1, scales);
    for (int u = 0; u < kUnits; ++u) {
      VF weights[kVectors];
      Format::Unit(bytes, scales, u, weights);
      store(at + u * Format::kUnit, weights);
    }
  };
  const int64_t whole = k / Format::kBlock * Format::kBlock;
  for (int64_t i = 0; i < whole; i += Format::kBlock) block(At<Format>(row, i), i);
  if constexpr (Format::kBlock == 32) {
    if (whole < k) {
      alignas(64) unsigned char padded[Format::kBytes] = {};
      std::memcpy(padded, At<Format>(row, whole), static_cast<size_t>((k - whole) * (Format::kBytes / 32)));
      block(padded, whole);
    }
  }
}

}  // namespace
