// The BF16 GEMM of the linear op for AVX-512 with BF16 dot products (flags.cmake compiles this unit for them): weights
// and activations rounded to BF16, sums in f32.
#include "vt/cpu/simd_avx512.h"
// Order matters: the vocabulary, then what is written in it.
#include "vt/cpu/linear_formats.h"
#include "vt/cpu/linear_generic.h"

namespace {

VT_INLINE __m512bh LoadBh(const uint16_t* p) { return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p)); }

// As Tile, on BF16 pairs.
template <int kRows>
VT_INLINE void TileBf16(const LinearPart& part, int64_t row, int64_t column, int count, int64_t stride) {
  VF acc[kRows][kTileColumns];
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 4
    for (int c = 0; c < kTileColumns; ++c) acc[m][c] = Zero();
  }
  const uint16_t* x = part.x_bf16 + row * part.x_stride;
  const uint16_t* w = reinterpret_cast<const uint16_t*>(part.panel) + column * stride;
  for (int64_t i = 0; i < stride; i += 32) {
    __m512bh weights[kTileColumns];
#pragma GCC unroll 4
    for (int c = 0; c < kTileColumns; ++c) weights[c] = LoadBh(w + c * stride + i);
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m) {
      const __m512bh value = LoadBh(x + m * part.x_stride + i);
#pragma GCC unroll 4
      for (int c = 0; c < kTileColumns; ++c) acc[m][c] = _mm512_dpbf16_ps(acc[m][c], weights[c], value);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m) {
    Finish(part, row + m, column, count, Reduce4(acc[m][0], acc[m][1], acc[m][2], acc[m][3]), true, true);
  }
}

template <int kRows>
void TileColumnsBf16(const LinearPart& part, int64_t row, int64_t stride) {
  for (int64_t column = 0; column < part.columns; column += kTileColumns) {
    const int count = static_cast<int>(part.columns - column < kTileColumns ? part.columns - column : kTileColumns);
    TileBf16<kRows>(part, row, column, count, stride);
  }
}

template <int kRows>
void TileRestBf16(const LinearPart& part, int64_t row, int64_t stride) {
  if constexpr (kRows > 0) {
    if (part.rows - row == kRows) return TileColumnsBf16<kRows>(part, row, stride);
    TileRestBf16<kRows - 1>(part, row, stride);
  }
}

template <class Format>
void GemmBf16(const LinearPart& part) {
  constexpr int kVectors = Format::kUnit / kWidth;
  const int64_t stride = vt::PaddedK(part.k);
  for (int64_t column = 0; column < part.columns; ++column) {
    uint16_t* out = reinterpret_cast<uint16_t*>(part.panel) + column * stride;
    UnpackPadded<Format>(part.weight + column * part.row_bytes, part.k,
                         [&](int64_t at, VF(&weights)[kVectors]) __attribute__((always_inline)) {
#pragma GCC unroll 16
                           for (int i = 0; i < kVectors; i += 2) {
                             const __m512bh pair = _mm512_cvtne2ps_pbh(weights[i + 1], weights[i]);
                             _mm512_storeu_si512(out + at + i * kWidth, reinterpret_cast<__m512i>(pair));
                           }
                         });
  }
  int64_t row = 0;
  for (; row + kTileRows <= part.rows; row += kTileRows) TileColumnsBf16<kTileRows>(part, row, stride);
  TileRestBf16<kTileRows - 1>(part, row, stride);
}

void RoundBf16(const float* in, int64_t count, uint16_t* out) {
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m512bh pair = _mm512_cvtne2ps_pbh(LoadF32(in + i + 16), LoadF32(in + i));
    _mm512_storeu_si512(out + i, reinterpret_cast<__m512i>(pair));
  }
  if (i == count) return;
  alignas(64) float padded[32] = {};
  std::memcpy(padded, in + i, static_cast<size_t>(count - i) * 4);
  const __m512bh pair = _mm512_cvtne2ps_pbh(LoadF32(padded + 16), LoadF32(padded));
  _mm512_storeu_si512(out + i, reinterpret_cast<__m512i>(pair));
}

}  // namespace

namespace vt {

constinit const LinearBf16Kernels kLinearBf16 = {
    {GemmBf16<F32>, GemmBf16<F16>, GemmBf16<BF16>, GemmBf16<Q8_0>, GemmBf16<Q4_0>, GemmBf16<Q4_1>, GemmBf16<Q5_0>,
     GemmBf16<Q4_K>, GemmBf16<Q6_K>},
    RoundBf16,
};

}  // namespace vt
