// The linear op in f32, for exact numerics and for float formats: weights expanded piece by piece, the same order of
// sums for any number of rows. Included after linear_columns.h by the unit of each instruction set; everything is
// internal to that unit.
#pragma once

namespace {

template <class F>
constexpr bool kIsFloat = requires { &F::Values; };

// The i-th 32 weights of a row, for a vector of columns: out[j * stride] is the j-th.
template <class F>
VT_INLINE void Expand32(const Column& column, int64_t i, float* out, int64_t stride) {
  if constexpr (kIsFloat<F>) {
    const Bytes payload = column.payload - column.half * kVectorBytes + i * F::kPayload * vt::kR16Rows;
    VT_UNROLL
    for (int j = 0; j < 32; ++j) StoreF(out + j * stride, F::Values(payload, column.half, j));
  } else {
    constexpr int kParts = 32 / F::kGroup, kSteps = F::kGroup / 4, kGroups = F::kBlock / 32;
    const int64_t block = i / kGroups;
    const int g = static_cast<int>(i % kGroups);
    VF d[kParts], m[kParts];
    F::Scales(F::Prepare(column.head + block * F::kHead * vt::kR16Rows, column.half), g, d, m);
#pragma GCC unroll 8
    for (int s = 0; s < 8; ++s) {
      const VI codes = F::Codes(column.payload + block * F::kPayload * vt::kR16Rows, g, s);
      VT_UNROLL
      for (int j = 0; j < 4; ++j, out += stride) {
        const VF code = ToFloat(Add32(And(ShiftRight(codes, 8 * j), 255), SplatI(-F::kCenter)));
        const int p = s / kSteps;
        StoreF(out, F::kMin ? Fma(d[p], code, m[p]) : Mul(d[p], code));
      }
    }
  }
}

// Rows of k of an expanded piece: the pieces' sums are added up one by one.
constexpr int64_t kPiece = 128;

template <int kRows>
VT_INLINE void FloatTile(const LinearPart& part, int64_t row, int64_t vector, int64_t begin, int64_t end,
                         const float* weights) {
  const int64_t stride = vt::PaddedK(part.k);
  VF sum[kRows][kPair];
  VT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    VT_UNROLL
    for (int v = 0; v < kPair; ++v) sum[r][v] = Zero();
  }
  const float* x = part.x + row * stride + begin;
  for (int64_t j = 0; j < end - begin; ++j) {
    VF w[kPair];
    VT_UNROLL
    for (int v = 0; v < kPair; ++v) w[v] = LoadF(weights + (j * kPair + v) * kLanes);
    VT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const VF value = Splat(x[r * stride + j]);
      VT_UNROLL
      for (int v = 0; v < kPair; ++v) sum[r][v] = Fma(w[v], value, sum[r][v]);
    }
  }
  VT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    VT_UNROLL
    for (int v = 0; v < kPair; ++v) {
      const VF total = begin == 0 ? sum[r][v] : Add(LoadColumns(part, row + r, vector + v), sum[r][v]);
      StoreColumns(part, row + r, vector + v, total, end == stride);
    }
  }
}

template <int kRows>
void FloatTiles(const LinearPart& part, int64_t row, int64_t vector, int64_t begin, int64_t end, const float* weights) {
  for (; row + kRows <= part.rows; row += kRows) FloatTile<kRows>(part, row, vector, begin, end, weights);
  if constexpr (kRows > 1) {
    if (row < part.rows) FloatTiles<kRows - 1>(part, row, vector, begin, end, weights);
  }
}

// Few rows of a float format, straight from its bits: the sums in the order of the pieces.
template <class F, int kRows>
void FloatRows(const LinearPart& part) {
  constexpr int kVectors = FewVectors(kRows);
  constexpr int64_t kBlockBytes = F::kPayload * vt::kR16Rows;
  const int64_t vectors = Vectors(part), stride = vt::PaddedK(part.k), bytes = stride / 32 * kBlockBytes;
  for (int64_t first = 0; first < vectors; first += kVectors) {
    const ColumnSet<kVectors> set(part, first);
    const auto& [columns, next] = set;
    VF total[kVectors][kRows], sum[kVectors][kRows];
    for (int64_t i = 0; i < stride / 32; ++i) {
      if (i % (kPiece / 32) == 0) {
        VT_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          VT_UNROLL
          for (int r = 0; r < kRows; ++r) {
            total[v][r] = i == 0 ? Zero() : i == kPiece / 32 ? sum[v][r] : Add(total[v][r], sum[v][r]);
            sum[v][r] = Zero();
          }
        }
      }
      VT_UNROLL
      for (int v = 0; v < kVectors; ++v)
        Prefetch<kBlockBytes>(BytesAhead(columns[v].head, i * kBlockBytes + kPayloadAhead, bytes, next[v].head));
#pragma GCC unroll 4
      for (int j = 0; j < 32; ++j) {
        VT_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          const VF weight = F::Values(columns[v].head + i * kBlockBytes, columns[v].half, j);
          VT_UNROLL
          for (int r = 0; r < kRows; ++r) sum[v][r] = Fma(weight, Splat(part.x[r * stride + i * 32 + j]), sum[v][r]);
        }
      }
    }
    VT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      VT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const VF all = stride <= kPiece ? sum[v][r] : Add(total[v][r], sum[v][r]);
        StoreColumns(part, r, first + v, all, true);
      }
    }
  }
}

template <class F>
void Exact(const LinearPart& part) {
  static_assert(vt::kFewFloatRows == 4);
  if constexpr (kIsFloat<F>) {
    if (part.rows == 1) return FloatRows<F, 1>(part);
    if (part.rows == 2) return FloatRows<F, 2>(part);
    if (part.rows == 3) return FloatRows<F, 3>(part);
    if (part.rows == 4) return FloatRows<F, 4>(part);
  }
  alignas(64) float weights[kPiece * kPair * kLanes];
  const int64_t vectors = Vectors(part), k = vt::PaddedK(part.k);
  for (int64_t vector = 0; vector < vectors; vector += kPair) {
    for (int64_t begin = 0; begin < k; begin += kPiece) {
      const int64_t end = begin + kPiece < k ? begin + kPiece : k;
      for (int v = 0; v < kPair; ++v) {
        const Column column = ColumnAt(part, vector + v < vectors ? vector + v : vector);
        for (int64_t i = begin / 32; i < end / 32; ++i) {
          Expand32<F>(column, i, weights + ((i * 32 - begin) * kPair + v) * kLanes, kPair * kLanes);
        }
      }
      FloatTiles<kFloatTileRows>(part, 0, vector, begin, end, weights);
    }
  }
}

template <class F>
void UnpackRow(Bytes group, int64_t head_bytes, int row, int64_t k, float* out) {
  const int half = row / kLanes;
  const Column column = {group, group + head_bytes + half * kVectorBytes, half};
  alignas(64) float values[32 * kLanes];
  for (int64_t i = 0; i < k; i += 32) {
    Expand32<F>(column, i / 32, values, kLanes);
    for (int64_t j = 0; j < 32 && i + j < k; ++j) out[i + j] = values[j * kLanes + row % kLanes];
  }
}

}  // namespace
