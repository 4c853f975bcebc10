// The linear op in f32, written once for all instruction sets: few-row kernels and the blocked GEMM, with the same
// bits. Included after linear_generic.h; everything is internal to the including unit.
#pragma once

namespace {

// Adds weights [0, count) of each row at rows[c], a multiple of 32 and of the format's block, times x to acc[c][m].
//
// The rows of a tile are several short streams, which hardware prefetchers follow badly: each block asks for the same
// place of the next tile, `ahead` bytes on.
template <class Format, int kColumns, int kRows>
VT_INLINE void AddProducts(const unsigned char* const (&rows)[kColumns], const float* x, int64_t x_stride,
                           int64_t count, int64_t ahead, VF (&acc)[kColumns][kRows]) {
  constexpr int kUnits = Format::kBlock / Format::kUnit, kVectors = Format::kUnit / kWidth;
  // Loading x once for all columns pays where the weights of all of them fit the registers.
  constexpr bool kShareX = kColumns * (kRows + kVectors) <= kFreeRegisters;
  static_assert(1024 / Format::kBlock * Format::kScales <= kMaxScales, "SumBlock is at most 1024");
  alignas(64) float scales[kColumns][Format::kScales == 0 ? 1 : kMaxScales];
  const int blocks = static_cast<int>(count / Format::kBlock);
  if constexpr (Format::kScales > 0) {
    for (int c = 0; c < kColumns; ++c) Format::Prepare(rows[c], blocks, scales[c]);
  }
  for (int b = 0; b < blocks; ++b) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 4
      for (int line = 0; line < (Format::kBytes + 63) / 64; ++line) {
        _mm_prefetch(reinterpret_cast<const char*>(rows[c] + b * Format::kBytes + line * 64 + ahead), _MM_HINT_T1);
      }
    }
    for (int u = 0; u < kUnits; ++u, x += Format::kUnit) {
      VF weights[kShareX ? kColumns : 1][kVectors];
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        VF(&own)[kVectors] = weights[kShareX ? c : 0];
        Format::Unit(rows[c] + b * Format::kBytes, scales[c] + b * Format::kScales, u, own);
        if constexpr (kShareX) continue;
#pragma GCC unroll 16
        for (int i = 0; i < kVectors; ++i) {
#pragma GCC unroll 8
          for (int m = 0; m < kRows; ++m) acc[c][m] = Fma(own[i], LoadF32(x + m * x_stride + i * kWidth), acc[c][m]);
        }
      }
      if constexpr (kShareX) {
#pragma GCC unroll 16
        for (int i = 0; i < kVectors; ++i) {
#pragma GCC unroll 8
          for (int m = 0; m < kRows; ++m) {
            const VF value = LoadF32(x + m * x_stride + i * kWidth);
#pragma GCC unroll 4
            for (int c = 0; c < kColumns; ++c) acc[c][m] = Fma(weights[c][i], value, acc[c][m]);
          }
        }
      }
    }
  }
}

// The float formats' last k % 32 weights, padded with zeros.
template <class Format, int kColumns, int kRows>
VT_INLINE void AddTail(const unsigned char* const (&rows)[kColumns], const float* x, int64_t x_stride, int64_t count,
                       VF (&acc)[kColumns][kRows]) {
  if constexpr (Format::kBlock == 32) {
    alignas(64) unsigned char padded[kColumns][Format::kBytes] = {};
    const unsigned char* padded_rows[kColumns];
    for (int c = 0; c < kColumns; ++c) {
      std::memcpy(padded[c], rows[c], static_cast<size_t>(count * (Format::kBytes / 32)));
      padded_rows[c] = padded[c];
    }
    AddProducts<Format, kColumns, kRows>(padded_rows, x, x_stride, 32, 0, acc);
  }
}

// Sums of kColumns columns from `column` on, of which `count` exist, over k in [begin, end).
template <class Format, int kColumns, int kRows>
VT_INLINE void FewRowsTile(const LinearPart& part, int64_t column, int count, int64_t begin, int64_t end) {
  const int64_t whole = part.k / 32 * 32;
  const bool last = end >= part.k;
  const unsigned char* rows[kColumns];
  VF acc[kColumns][kRows];
#pragma GCC unroll 4
  for (int c = 0; c < kColumns; ++c) {
    rows[c] = At<Format>(part.weight + (column + (c < count ? c : 0)) * part.row_bytes, begin);
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m) acc[c][m] = Zero();
  }
  AddProducts<Format, kColumns, kRows>(rows, part.x + begin, part.x_stride, (last ? whole : end) - begin,
                                       kColumns * part.row_bytes, acc);
  if (last && whole < part.k) {
    for (int c = 0; c < kColumns; ++c) rows[c] = At<Format>(rows[c], whole - begin);
    AddTail<Format, kColumns, kRows>(rows, part.x + whole, part.x_stride, part.k - whole, acc);
  }
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m) {
    VF sums[4];
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) sums[c] = acc[c < kColumns ? c : 0][m];
    Finish(part, m, column, count, Reduce4(sums[0], sums[1], sums[2], sums[3]), begin == 0, last);
  }
}

template <class Format, int kRows>
void FewRows(const LinearPart& part) {
  constexpr int kColumns = FewRowColumns(kRows);
  const int64_t step = vt::SumBlock(part.k);
  for (int64_t column = 0; column < part.columns; column += kColumns) {
    const int count = static_cast<int>(part.columns - column < kColumns ? part.columns - column : kColumns);
    for (int64_t k = 0; k < part.k; k += step) {
      FewRowsTile<Format, kColumns, kRows>(part, column, count, k, k + step < part.k ? k + step : part.k);
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
