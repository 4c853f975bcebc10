// The BF16 GEMM of the linear op for AVX-512 with BF16 dot products (flags.cmake compiles this unit for them): BF16
// weights in R16, activations rounded to BF16, sums in f32.
#include "vt/cpu/simd_avx512.h"
// Order matters: the vocabulary, then what is written in it.
#include "vt/cpu/linear_formats.h"
// Again.
#include "vt/cpu/linear_columns.h"

namespace {

constexpr int kBf16TileRows = 12;
constexpr int kBf16Fetch = 2;  // lines for two of k: all of them in one tile, since few rows have no more

VT_INLINE __m512bh AsBf16(VI v) { return reinterpret_cast<__m512bh>(v); }

template <int kRows>
VT_INLINE void Bf16Tile(const LinearPart& part, int64_t row, int64_t vector, Bytes first, Bytes second, Ahead& ahead) {
  const int64_t stride = vt::PaddedK(part.k);
  const uint16_t* x = part.x_bf16 + row * stride;
  VF sum[kRows][kPair];
  VT_UNROLL
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = Zero();
  for (int64_t j = 0; j < stride; j += 2, first += 64, second += 64) {
    ahead.Fetch<kBf16Fetch>();
    const __m512bh a = AsBf16(LoadI(first)), b = AsBf16(LoadI(second));
    VT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const __m512bh pair = AsBf16(SplatPair(x + r * stride + j));
      sum[r][0] = _mm512_dpbf16_ps(sum[r][0], a, pair);
      sum[r][1] = _mm512_dpbf16_ps(sum[r][1], b, pair);
    }
  }
  VT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    StoreColumns(part, row + r, vector, sum[r][0], true);
    StoreColumns(part, row + r, vector + 1, sum[r][1], true);
  }
}

// A tile of `rows` <= kRows.
template <int kRows>
void Bf16Rows(const LinearPart& part, int64_t row, int64_t rows, int64_t vector, Bytes first, Bytes second,
              Ahead& ahead) {
  if (rows == kRows) return Bf16Tile<kRows>(part, row, vector, first, second, ahead);
  if constexpr (kRows > 1) Bf16Rows<kRows - 1>(part, row, rows, vector, first, second, ahead);
}

void GemmBf16(const LinearPart& part) {
  const int64_t vectors = Vectors(part);
  for (int64_t vector = 0; vector < vectors; vector += kPair) {
    const Bytes first = ColumnAt(part, vector).payload;
    const Bytes second = vector + 1 < vectors ? ColumnAt(part, vector + 1).payload : first;
    Ahead ahead = NextPanel(part, vector);
    for (int64_t row = 0; row < part.rows;) {  // tiles of equal height
      const int64_t left = part.rows - row, tiles = (left + kBf16TileRows - 1) / kBf16TileRows;
      const int64_t rows = (left + tiles - 1) / tiles;
      Bf16Rows<kBf16TileRows>(part, row, rows, vector, first, second, ahead);
      row += rows;
    }
  }
}

void RoundBf16(const float* in, int64_t count, uint16_t* out) {
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m512bh pair = _mm512_cvtne2ps_pbh(LoadF(in + i + 16), LoadF(in + i));
    _mm512_storeu_si512(out + i, reinterpret_cast<__m512i>(pair));
  }
  if (i == count) return;
  alignas(64) float padded[32] = {};
  std::memcpy(padded, in + i, static_cast<size_t>(count - i) * 4);
  const __m512bh pair = _mm512_cvtne2ps_pbh(LoadF(padded + 16), LoadF(padded));
  _mm512_storeu_si512(out + i, reinterpret_cast<__m512i>(pair));
}

}  // namespace

namespace vt {

constinit const LinearBf16Kernels kLinearBf16 = {GemmBf16, RoundBf16};

}  // namespace vt
