// The linear op in f32, written once for all instruction sets: few-row kernels and the blocked GEMM, with the same
// bits. Included after linear_generic.h; everything is internal to the including unit.
#pragma once

namespace {

// Adds weights [0, count) of the row at `block`, a multiple of 32 and of the format's unit, times x to acc[m].
template <class Format, int kRows>
VT_INLINE void AddProducts(const unsigned char* block, const float* x, int64_t x_stride, int64_t count,
                           VF (&acc)[kRows]) {
  constexpr int kUnits = Format::kBlock / Format::kUnit, kVectors = Format::kUnit / kWidth;
  for (int64_t k = 0; k < count; k += Format::kBlock, block += Format::kBytes, x += Format::kBlock) {
    const Format state(block);
    for (int u = 0; u < kUnits; ++u) {
      VF weights[kVectors];
      state.Unit(u, weights);
#pragma GCC unroll 16
      for (int i = 0; i < kVectors; ++i) {
#pragma GCC unroll 8
        for (int m = 0; m < kRows; ++m) {
          acc[m] = Fma(weights[i], LoadF32(x + m * x_stride + u * Format::kUnit + i * kWidth), acc[m]);
        }
      }
    }
  }
}

// The float formats' last k % 32 weights, padded with zeros.
template <class Format, int kRows>
VT_INLINE void AddTail(const unsigned char* block, const float* x, int64_t x_stride, int64_t count, VF (&acc)[kRows]) {
  if constexpr (Format::kBlock == 32) {
    alignas(64) unsigned char padded[Format::kBytes] = {};
    std::memcpy(padded, block, static_cast<size_t>(count * (Format::kBytes / 32)));
    AddProducts<Format, kRows>(padded, x, x_stride, 32, acc);
  }
}

template <class Format, int kRows>
void FewRows(const LinearPart& part) {
  const int64_t whole = part.k / 32 * 32, step = vt::SumBlock(part.k);
  for (int64_t column = 0; column < part.columns; column += kTileColumns) {
    const int count = static_cast<int>(part.columns - column < kTileColumns ? part.columns - column : kTileColumns);
    for (int64_t k = 0; k < part.k; k += step) {
      const bool last = k + step >= part.k;
      const int64_t end = last ? whole : k + step;
      VF acc[kTileColumns][kRows];
#pragma GCC unroll 4
      for (int c = 0; c < kTileColumns; ++c) {
#pragma GCC unroll 8
        for (int m = 0; m < kRows; ++m) acc[c][m] = Zero();
        const unsigned char* row = part.weight + (column + (c < count ? c : 0)) * part.row_bytes;
        AddProducts<Format, kRows>(At<Format>(row, k), part.x + k, part.x_stride, end - k, acc[c]);
        if (last && whole < part.k) {
          AddTail<Format, kRows>(At<Format>(row, whole), part.x + whole, part.x_stride, part.k - whole, acc[c]);
        }
      }
#pragma GCC unroll 8
      for (int m = 0; m < kRows; ++m) {
        Finish(part, m, column, count, Reduce4(acc[0][m], acc[1][m], acc[2][m], acc[3][m]), k == 0, last);
      }
    }
  }
}

template <class Format>
void FewRowsAny(const LinearPart& part) {
  switch (part.rows) {
    case 1:
      return FewRows<Format, 1>(part);
    case 2:
      return FewRows<Format, 2>(part);
    case 3:
      return FewRows<Format, 3>(part);
    case 4:
      return FewRows<Format, 4>(part);
    case 5:
      return FewRows<Format, 5>(part);
    case 6:
      return FewRows<Format, 6>(part);
    case 7:
      return FewRows<Format, 7>(part);
    case 8:
      return FewRows<Format, 8>(part);
    default:
      return;
  }
}

template <class Format>
void UnpackRow(const unsigned char* row, int64_t k, float* out) {
  constexpr int kVectors = Format::kUnit / kWidth;
  UnpackPadded<Format>(row, k, [&](int64_t at, VF(&weights)[kVectors]) __attribute__((always_inline)) {
    if (at + Format::kUnit <= k) {
#pragma GCC unroll 16
      for (int i = 0; i < kVectors; ++i) StoreF32(out + at + i * kWidth, weights[i]);
      return;
    }
    alignas(64) float padded[Format::kUnit];
    for (int i = 0; i < kVectors; ++i) StoreF32(padded + i * kWidth, weights[i]);
    std::memcpy(out + at, padded, static_cast<size_t>(k - at) * 4);
  });
}

// One tile: kRows rows of x times four panel rows over [k, end).
template <int kRows>
VT_INLINE void Tile(const LinearPart& part, int64_t row, int64_t column, int count, int64_t k, int64_t end,
                    int64_t stride) {
  VF acc[kRows][kTileColumns];
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 4
    for (int c = 0; c < kTileColumns; ++c) acc[m][c] = Zero();
  }
  const float* x = part.x + row * part.x_stride;
  const float* w = part.panel + column * stride;
  for (int64_t i = k; i < end; i += kWidth) {
    VF weights[kTileColumns];
#pragma GCC unroll 4
    for (int c = 0; c < kTileColumns; ++c) weights[c] = LoadF32(w + c * stride + i);
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m) {
      const VF value = LoadF32(x + m * part.x_stride + i);
#pragma GCC unroll 4
      for (int c = 0; c < kTileColumns; ++c) acc[m][c] = Fma(weights[c], value, acc[m][c]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m) {
    const __m128 sums = Reduce4(acc[m][0], acc[m][1], acc[m][2], acc[m][3]);
    Finish(part, row + m, column, count, sums, k == 0, end >= part.k);
  }
}

template <int kRows>
void TileColumns(const LinearPart& part, int64_t row, int64_t k, int64_t end, int64_t stride) {
  for (int64_t column = 0; column < part.columns; column += kTileColumns) {
    const int count = static_cast<int>(part.columns - column < kTileColumns ? part.columns - column : kTileColumns);
    Tile<kRows>(part, row, column, count, k, end, stride);
  }
}

template <int kRows>
void TileRest(const LinearPart& part, int64_t row, int64_t k, int64_t end, int64_t stride) {
  if constexpr (kRows > 0) {
    if (part.rows - row == kRows) return TileColumns<kRows>(part, row, k, end, stride);
    TileRest<kRows - 1>(part, row, k, end, stride);
  }
}

void SweepF32(const LinearPart& part) {
  const int64_t stride = vt::PaddedK(part.k), step = vt::SumBlock(part.k);
  for (int64_t k = 0; k < part.k; k += step) {
    const int64_t end = k + step < stride ? k + step : stride;
    int64_t row = 0;
    for (; row + kTileRows <= part.rows; row += kTileRows) TileColumns<kTileRows>(part, row, k, end, stride);
    TileRest<kTileRows - 1>(part, row, k, end, stride);
  }
}

template <class Format>
void GemmF32(const LinearPart& part) {
  constexpr int kVectors = Format::kUnit / kWidth;
  const int64_t stride = vt::PaddedK(part.k);
  for (int64_t column = 0; column < part.columns; ++column) {
    float* out = part.panel + column * stride;
    UnpackPadded<Format>(part.weight + column * part.row_bytes, part.k,
                         [&](int64_t at, VF(&weights)[kVectors]) __attribute__((always_inline)) {
#pragma GCC unroll 16
                           for (int i = 0; i < kVectors; ++i) StoreF32(out + at + i * kWidth, weights[i]);
                         });
  }
  SweepF32(part);
}

}  // namespace
