// Products of a tile with up to 6 rows (decoding): keys and values go from the cache to the sums in registers. Sums run
// in the same order as those of paged_attention_packed.h, so both give the same bits.
#pragma once
#include <cstdint>

#include "vt/cpu/paged_attention_load.h"

namespace vt {
namespace {

// Vectors of keys side by side, so that enough sums are under way to hide the latency of an addition.
constexpr int ScoreVectors(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

// Calls score<U>(first) for groups of U = ScoreVectors(R) vectors of keys in columns [begin, end), then for single
// ones.
template <int R, class Many, class One>
inline __attribute__((always_inline)) void ForKeyVectors(int64_t begin, int64_t end, Many&& many, One&& one) {
  constexpr int64_t kWide = ScoreVectors(R) * Vec::kLanes;
  int64_t j = begin;
  for (; j + kWide <= end; j += kWide) many(j);
  for (; j < end; j += Vec::kLanes) one(j);
}

// Scores of R rows for U vectors of positions from `position` on; q is [head_dim][R].
template <class E, int R, int U>
inline void DirectScoreVectors(const AttentionTile& tile, const float* q, int64_t position, float* scores) {
  const uint8_t* unit[U];
  int64_t lane[U];
  Vec::F sum[U][R];
  VT_UNROLL
  for (int u = 0; u < U; ++u) {
    const int64_t p = position + u * Vec::kLanes;
    unit[u] = KeyUnit(tile, p), lane[u] = p % kGroup;
    VT_UNROLL
    for (int r = 0; r < R; ++r) sum[u][r] = Vec::Zero();
  }
  const int64_t pairs = tile.head_dim / 2, pair_bytes = tile.kv.unit_bytes / pairs;
  for (int64_t pair = 0; pair < pairs; ++pair, q += 2 * R) {
    // The values of these positions, a little at a time: they are needed when the range has its weights.
    VT_UNROLL
    for (int u = 0; u < U; ++u) PrefetchLines(unit[u] + tile.kv.value_offset + pair * pair_bytes, pair_bytes);
    Vec::F a[U], b[U];
    VT_UNROLL
    for (int u = 0; u < U; ++u) E::Keys(unit[u], pair, lane[u], a[u], b[u]);
    VT_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vec::F factor = Vec::Set(q[r]);
      VT_UNROLL
      for (int u = 0; u < U; ++u) sum[u][r] = Vec::Fma(factor, a[u], sum[u][r]);
    }
    VT_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vec::F factor = Vec::Set(q[R + r]);
      VT_UNROLL
      for (int u = 0; u < U; ++u) sum[u][r] = Vec::Fma(factor, b[u], sum[u][r]);
    }
  }
  VT_UNROLL
  for (int u = 0; u < U; ++u) VT_UNROLL
  for (int r = 0; r < R; ++r) Vec::Store(scores + r * kAttentionRange + u * Vec::kLanes, sum[u][r]);
}

// Scores of the columns [begin, end) of the range at position `base`.
template <class E, int R>
void DirectScores(const AttentionTile& tile, const float* q, int64_t base, int64_t begin, int64_t end, float* scores) {
  ForKeyVectors<R>(
      begin, end, [&](int64_t j) { DirectScoreVectors<E, R, ScoreVectors(R)>(tile, q, base + j, scores + j); },
      [&](int64_t j) { DirectScoreVectors<E, R, 1>(tile, q, base + j, scores + j); });
}

// out[r] += sum over the positions [begin, end) of weights[r] * value, for R rows and N vectors of dimensions from
// `first` on, of which `width` are read, straight from the cache. Asks for the keys of the next range, which ends at
// `next_limit`, along with the first dimensions.
template <class E, int R, int N>
void DirectValueBlock(const AttentionTile& tile, const float* weights, int64_t begin, int64_t end, int64_t first,
                      int64_t width, int64_t next_limit, float* out) {
  const int64_t padded = AttentionPaddedDim(tile.head_dim), n_width = N > 1 ? int64_t{Vec::kLanes} : width;
  const int64_t ahead_bytes = tile.kv.unit_bytes / kGroup;
  Vec::F sum[R][N];
  VT_UNROLL
  for (int r = 0; r < R; ++r) {
    VT_UNROLL
    for (int n = 0; n < N; ++n) sum[r][n] = Vec::Load(out + r * padded + n * Vec::kLanes);
  }
  const auto add = [&](const float* w, const Vec::F(&v)[N]) __attribute__((always_inline)) {
    VT_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vec::F factor = Vec::Set(w[r * kAttentionRange]);
      VT_UNROLL
      for (int n = 0; n < N; ++n) sum[r][n] = Vec::Fma(factor, v[n], sum[r][n]);
    }
  };
  for (int64_t group = begin; group < end; group += kGroup) {
    const uint8_t *unit = ValueUnit(tile, group), *ahead = first == 0 ? KeysAhead(tile, group, next_limit) : nullptr;
    const int64_t count = Min(kGroup, end - group);
    for (int64_t j = 0; j < count; j += 2, weights += 2) {
      if (ahead != nullptr) PrefetchLines(ahead + j * ahead_bytes, 2 * ahead_bytes);
      Vec::F a[N], b[N];
      VT_UNROLL
      for (int n = 0; n < N; ++n) E::Values(unit, j, first + n * Vec::kLanes, tile.head_dim, n_width, a[n], b[n]);
      add(weights, a);
      if (j + 1 < count) add(weights + 1, b);  // behind the end lies what nobody wrote
    }
  }
  VT_UNROLL
  for (int r = 0; r < R; ++r) {
    VT_UNROLL
    for (int n = 0; n < N; ++n) Vec::Store(out + r * padded + n * Vec::kLanes, sum[r][n]);
  }
}

template <class E, int R>
void DirectValues(const AttentionTile& tile, const float* weights, int64_t begin, int64_t end, int64_t next_limit,
                  float* out) {
  constexpr int64_t kWide = Vec::kVectors * Vec::kLanes;
  int64_t n = 0;
  for (; n + kWide <= tile.head_dim; n += kWide)
    DirectValueBlock<E, R, Vec::kVectors>(tile, weights, begin, end, n, kWide, next_limit, out + n);
  for (; n < tile.head_dim; n += Vec::kLanes)
    DirectValueBlock<E, R, 1>(tile, weights, begin, end, n, tile.head_dim - n, next_limit, out + n);
}

using DirectScoreFn = void (*)(const AttentionTile&, const float*, int64_t, int64_t, int64_t, float*);
using DirectValueFn = void (*)(const AttentionTile&, const float*, int64_t, int64_t, int64_t, float*);
template <class E>
constexpr DirectScoreFn kDirectScores[] = {DirectScores<E, 1>, DirectScores<E, 2>, DirectScores<E, 3>,
                                           DirectScores<E, 4>, DirectScores<E, 5>, DirectScores<E, 6>};
template <class E>
constexpr DirectValueFn kDirectValues[] = {DirectValues<E, 1>, DirectValues<E, 2>, DirectValues<E, 3>,
                                           DirectValues<E, 4>, DirectValues<E, 5>, DirectValues<E, 6>};

}  // namespace
}  // namespace vt
