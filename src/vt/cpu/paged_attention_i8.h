// Products of a tile with a cache of i8, in whole numbers: queries and weights are rounded to 16 bits with a scale for
// each row, so an element of the cache is multiplied from its bits and a sum is exact, whatever its order. The
// rounding, 2^-16 of a row's largest, is far below that of the cache. Blocks of up to 6 rows, for few rows and many.
#pragma once
#include <cstdint>

#include "vt/cpu/paged_attention_direct.h"

namespace vt {
namespace {

constexpr float kI16Largest = 32767;

// 256 * 32767 * 128 is below 2^31: neither a head nor a range of keys overflows a sum.
static_assert(kAttentionMaxHeadDim <= 256 && kAttentionRange <= 256);

// Rounds values[0, n) * factor to 16 bits relative to the largest; n is a multiple of 8, room is for whole vectors of
// both. Returns the scale; NaN when an element is no number.
inline float RoundToI16(const float* values, int64_t n, float factor, int16_t* out) {
  Vec::F largest = Vec::Zero(), zero = Vec::Zero();
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const Vec::F v = n - i >= Vec::kLanes ? Vec::Load(values + i) : Vec::LoadPart(values + i, n - i);
    largest = Vec::Max(largest, Vec::Abs(v));
    zero = Vec::Fma(v, Vec::Zero(), zero);
  }
  const float bound = Vec::Largest(largest), inverse = bound > 0 ? kI16Largest / bound : 0;
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const Vec::F v = n - i >= Vec::kLanes ? Vec::Load(values + i) : Vec::LoadPart(values + i, n - i);
    Vec::StoreI16(out + i, Vec::Mul(v, Vec::Set(inverse)));
  }
  return bound * factor / kI16Largest + Vec::Sum(zero);
}

// Scores of R rows for U vectors of positions from `position` on; q is [R][padded], key_scales those of the positions.
template <int R, int U>
inline void I8ScoreVectors(const AttentionTile& tile, const int16_t* q, const float* row_scales, int64_t position,
                           const float* key_scales, float* scores) {
  const int64_t padded = AttentionPaddedDim(tile.head_dim), pairs = tile.head_dim / 2;
  const uint8_t* keys[U];
  Vec::N sum[U][R];
  VT_UNROLL
  for (int u = 0; u < U; ++u) {
    const int64_t p = position + u * Vec::kLanes;
    keys[u] = KeyUnit(tile, p) + p % kGroup * 2;
    VT_UNROLL
    for (int r = 0; r < R; ++r) sum[u][r] = Vec::ZeroN();
  }
  for (int64_t pair = 0; pair < pairs; ++pair) {
    VT_UNROLL
    for (int u = 0; u < U; ++u) PrefetchLines(keys[u] + tile.kv.value_offset + pair * (2 * kGroup), 1);
    Vec::N k[U];
    VT_UNROLL
    for (int u = 0; u < U; ++u) k[u] = Vec::LoadI8Pairs(keys[u] + pair * (2 * kGroup));
    VT_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vec::N factor = Vec::SetPair(q + r * padded + 2 * pair);
      VT_UNROLL
      for (int u = 0; u < U; ++u) sum[u][r] = Vec::AddProducts(k[u], factor, sum[u][r]);
    }
  }
  VT_UNROLL
  for (int u = 0; u < U; ++u) {
    const Vec::F scale = Vec::Load(key_scales + u * Vec::kLanes);
    VT_UNROLL
    for (int r = 0; r < R; ++r)
      Vec::Store(scores + r * kAttentionRange + u * Vec::kLanes,
                 Vec::Mul(Vec::Mul(Vec::ToFloat(sum[u][r]), Vec::Set(row_scales[r])), scale));
  }
}

// Scores of the columns [begin, end) of the range at position `base`.
template <int R>
void I8Scores(const AttentionTile& tile, const int16_t* q, const float* row_scales, int64_t base, int64_t begin,
              int64_t end, const float* key_scales, float* scores) {
  ForKeyVectors<R>(
      begin, end,
      [&](int64_t j) { I8ScoreVectors<R, ScoreVectors(R)>(tile, q, row_scales, base + j, key_scales + j, scores + j); },
      [&](int64_t j) { I8ScoreVectors<R, 1>(tile, q, row_scales, base + j, key_scales + j, scores + j); });
}

// out[r] += sum over the positions [begin, end), whole units, of weights[r] * value, for R rows and N vectors of
// dimensions from `first` on, of which `width` are read. Asks for the keys and scales of the next range, which ends at
// `next_limit`, along with the first dimensions.
template <int R, int N>
void I8ValueBlock(const AttentionTile& tile, const int16_t* weights, int64_t begin, int64_t end, int64_t first,
                  int64_t width, int64_t next_limit, int32_t* out) {
  const int64_t padded = AttentionPaddedDim(tile.head_dim);
  Vec::N sum[R][N];
  VT_UNROLL
  for (int r = 0; r < R; ++r) VT_UNROLL
  for (int n = 0; n < N; ++n) sum[r][n] = Vec::LoadN(out + r * padded + n * Vec::kLanes);
  for (int64_t group = begin; group < end; group += kGroup) {
    const uint8_t* p = ValueUnit(tile, group) + first * 2;
    const uint8_t* ahead = first == 0 ? KeysAhead(tile, group, next_limit) : nullptr;
    if (ahead != nullptr) {
      PrefetchLines(ahead + kGroup * tile.head_dim, 1);
      PrefetchLines(ahead + kGroup * tile.head_dim + tile.kv.value_offset, 1);
    }
    for (int64_t j = 0; j < kGroup; j += 2, weights += 2, p += 2 * tile.head_dim) {
      if (ahead != nullptr) PrefetchLines(ahead + j * tile.head_dim, 2 * tile.head_dim);
      Vec::N v[N];
      VT_UNROLL
      for (int n = 0; n < N; ++n)
        v[n] = N > 1 || width >= Vec::kLanes ? Vec::LoadI8Pairs(p + n * (2 * Vec::kLanes))
                                             : Vec::LoadI8PairsPart(p, width);
      VT_UNROLL
      for (int r = 0; r < R; ++r) {
        const Vec::N factor = Vec::SetPair(weights + r * kAttentionRange);
        VT_UNROLL
        for (int n = 0; n < N; ++n) sum[r][n] = Vec::AddProducts(v[n], factor, sum[r][n]);
      }
    }
  }
  VT_UNROLL
  for (int r = 0; r < R; ++r) VT_UNROLL
  for (int n = 0; n < N; ++n) Vec::StoreN(out + r * padded + n * Vec::kLanes, sum[r][n]);
}

template <int R>
void I8Values(const AttentionTile& tile, const int16_t* weights, int64_t begin, int64_t end, int64_t next_limit,
              int32_t* out) {
  constexpr int64_t kWide = Vec::kVectors * Vec::kLanes;
  int64_t n = 0;
  for (; n + kWide <= tile.head_dim; n += kWide)
    I8ValueBlock<R, Vec::kVectors>(tile, weights, begin, end, n, kWide, next_limit, out + n);
  for (; n < tile.head_dim; n += Vec::kLanes)
    I8ValueBlock<R, 1>(tile, weights, begin, end, n, tile.head_dim - n, next_limit, out + n);
}

using I8ScoreFn = void (*)(const AttentionTile&, const int16_t*, const float*, int64_t, int64_t, int64_t, const float*,
                           float*);
using I8ValueFn = void (*)(const AttentionTile&, const int16_t*, int64_t, int64_t, int64_t, int32_t*);
constexpr I8ScoreFn kI8Scores[] = {I8Scores<1>, I8Scores<2>, I8Scores<3>, I8Scores<4>, I8Scores<5>, I8Scores<6>};
constexpr I8ValueFn kI8Values[] = {I8Values<1>, I8Values<2>, I8Values<3>, I8Values<4>, I8Values<5>, I8Values<6>};

}  // namespace
}  // namespace vt
