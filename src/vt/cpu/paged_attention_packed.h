// Products of a tile with many rows: 64 keys or values are dequantized at once for all rows, then register blocks of 6
// rows. Sums run in rising order from 0, whatever the block shape.
#pragma once
#include <cstdint>

#include "vt/cpu/paged_attention_load.h"

namespace vt {
namespace {

// Keys of kLanes positions from `position` on as columns of keys[head_dim][64].
template <class E>
void PackKeyVectors(const AttentionTile& tile, int64_t position, float* keys) {
  const uint8_t* unit = KeyUnit(tile, position);
  const int64_t lane = position % kGroup, pairs = tile.head_dim / 2;
  for (int64_t pair = 0; pair < pairs; ++pair, keys += 2 * kSubTile) {
    Vec::F a, b;
    E::Keys(unit, pair, lane, a, b);
    Vec::Store(keys, a);
    Vec::Store(keys + kSubTile, b);
  }
}

// Values of `count` positions (a multiple of 16) from `position` on as floats [count][padded]; those from `limit` on
// are 0.
template <class E>
void PackValues(const AttentionTile& tile, int64_t position, int64_t count, int64_t limit, float* values) {
  const int64_t padded = AttentionPaddedDim(tile.head_dim);
  for (int64_t group = 0; group < count; group += kGroup) {
    const int64_t seen = limit - position - group;
    const uint8_t* unit = seen > 0 ? ValueUnit(tile, position + group) : nullptr;
    for (int64_t j = 0; j < kGroup; j += 2, values += 2 * padded)
      for (int64_t c = 0; c < padded; c += Vec::kLanes) {
        Vec::F a = Vec::Zero(), b = Vec::Zero();
        if (j < seen && c < tile.head_dim) E::Values(unit, j, c, tile.head_dim, tile.head_dim - c, a, b);
        Vec::Store(values + c, a);
        Vec::Store(values + padded + c, j + 1 < seen ? b : Vec::Zero());
      }
  }
}

// scores[r][n] = sum over c of q[c][r] * keys[c][n], for R rows and N vectors of keys.
template <int R, int N>
void ScoreBlock(const float* q, const float* keys, int64_t head_dim, float* scores) {
  Vec::F sum[R][N];
  VT_UNROLL
  for (int r = 0; r < R; ++r) VT_UNROLL
  for (int n = 0; n < N; ++n) sum[r][n] = Vec::Zero();
  for (int64_t c = 0; c < head_dim; ++c) {
    Vec::F k[N];
    VT_UNROLL
    for (int n = 0; n < N; ++n) k[n] = Vec::Load(keys + c * kSubTile + n * Vec::kLanes);
    VT_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vec::F factor = Vec::Set(q[c * R + r]);
      VT_UNROLL
      for (int n = 0; n < N; ++n) sum[r][n] = Vec::Fma(factor, k[n], sum[r][n]);
    }
  }
  VT_UNROLL
  for (int r = 0; r < R; ++r) VT_UNROLL
  for (int n = 0; n < N; ++n) Vec::Store(scores + r * kAttentionRange + n * Vec::kLanes, sum[r][n]);
}

// values_out[r][n] += sum over j of weights[r][j] * values[j][n], for R rows and N vectors of dimensions.
template <int R, int N>
void ValueBlock(const float* weights, const float* values, int64_t keys, int64_t padded, float* out) {
  Vec::F sum[R][N];
  VT_UNROLL
  for (int r = 0; r < R; ++r) VT_UNROLL
  for (int n = 0; n < N; ++n) sum[r][n] = Vec::Load(out + r * padded + n * Vec::kLanes);
  for (int64_t j = 0; j < keys; ++j) {
    Vec::F v[N];
    VT_UNROLL
    for (int n = 0; n < N; ++n) v[n] = Vec::Load(values + j * padded + n * Vec::kLanes);
    VT_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vec::F factor = Vec::Set(weights[r * kAttentionRange + j]);
      VT_UNROLL
      for (int n = 0; n < N; ++n) sum[r][n] = Vec::Fma(factor, v[n], sum[r][n]);
    }
  }
  VT_UNROLL
  for (int r = 0; r < R; ++r) VT_UNROLL
  for (int n = 0; n < N; ++n) Vec::Store(out + r * padded + n * Vec::kLanes, sum[r][n]);
}

template <int R>
void ScoreRows(const float* q, const float* keys, int64_t count, int64_t head_dim, float* scores) {
  constexpr int64_t kWide = Vec::kVectors * Vec::kLanes;
  int64_t n = 0;
  for (; n + kWide <= count; n += kWide) ScoreBlock<R, Vec::kVectors>(q, keys + n, head_dim, scores + n);
  for (; n < count; n += Vec::kLanes) ScoreBlock<R, 1>(q, keys + n, head_dim, scores + n);
}

template <int R>
void ValueRows(const float* weights, const float* values, int64_t keys, int64_t padded, float* out) {
  constexpr int64_t kWide = Vec::kVectors * Vec::kLanes;
  int64_t n = 0;
  for (; n + kWide <= padded; n += kWide) ValueBlock<R, Vec::kVectors>(weights, values + n, keys, padded, out + n);
  for (; n < padded; n += Vec::kLanes) ValueBlock<R, 1>(weights, values + n, keys, padded, out + n);
}

using ScoreFn = void (*)(const float*, const float*, int64_t, int64_t, float*);
using ValueFn = void (*)(const float*, const float*, int64_t, int64_t, float*);
constexpr ScoreFn kScoreRows[] = {ScoreRows<1>, ScoreRows<2>, ScoreRows<3>, ScoreRows<4>, ScoreRows<5>, ScoreRows<6>};
constexpr ValueFn kValueRows[] = {ValueRows<1>, ValueRows<2>, ValueRows<3>, ValueRows<4>, ValueRows<5>, ValueRows<6>};

}  // namespace
}  // namespace vt
