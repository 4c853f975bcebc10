// Products of a tile with up to 6 rows (decoding): keys and values go from the cache to the sums in registers. Sums run
// in the same order as those of paged_attention_packed.h, so both give the same bits.
#pragma once
#include <cstdint>

#include "vt/cpu/paged_attention_load.h"

namespace vt {
namespace {

// Adds the products of R rows with `width` dwords of transposed keys to sum; q is [elements][R].
template <int R, bool kBf16>
inline __attribute__((always_inline)) void AddScores(const Vec::F (&v)[Vec::kLanes], int64_t width, const float* q,
                                                     Vec::F (&sum)[R]) {
  VT_UNROLL
  for (int i = 0; i < Vec::kLanes; ++i) {
    if (i >= width) break;
    if constexpr (kBf16) {
      const Vec::F low = Vec::LowBf16(v[i]), high = Vec::HighBf16(v[i]);
      VT_UNROLL
      for (int r = 0; r < R; ++r) sum[r] = Vec::Fma(Vec::Set(q[2 * i * R + r]), low, sum[r]);
      VT_UNROLL
      for (int r = 0; r < R; ++r) sum[r] = Vec::Fma(Vec::Set(q[(2 * i + 1) * R + r]), high, sum[r]);
    } else {
      VT_UNROLL
      for (int r = 0; r < R; ++r) sum[r] = Vec::Fma(Vec::Set(q[i * R + r]), v[i], sum[r]);
    }
  }
}

// Scores of a tile of R rows for kLanes positions from `position` on, in registers from the cache to the sum: for few
// rows the detour over packed keys would cost more than the products.
template <int R, bool kBf16>
void DirectScores(const AttentionTile& tile, const float* q, int64_t position, int64_t limit, float* scores) {
  constexpr int64_t kPerDword = kBf16 ? 2 : 1;
  const int64_t dwords = tile.head_dim / kPerDword, stride = tile.token_stride / kPerDword, count = limit - position;
  const float* source = static_cast<const float*>(tile.cache) + ElementOf(tile, position) / kPerDword;
  Vec::F sum[R], v[Vec::kLanes];
  VT_UNROLL
  for (int r = 0; r < R; ++r) sum[r] = Vec::Zero();
  int64_t c = 0;
  for (; c + Vec::kLanes <= dwords && count >= Vec::kLanes; c += Vec::kLanes) {
    LoadTransposed(source + c, stride, Vec::kLanes, Vec::kLanes, v);
    AddScores<R, kBf16>(v, Vec::kLanes, q + kPerDword * c * R, sum);
  }
  for (; c < dwords; c += Vec::kLanes) {
    const int64_t width = Min(Vec::kLanes, dwords - c);
    LoadTransposed(source + c, stride, count, width, v);
    AddScores<R, kBf16>(v, width, q + kPerDword * c * R, sum);
  }
  VT_UNROLL
  for (int r = 0; r < R; ++r) Vec::Store(scores + r * kAttentionRange, sum[r]);
}

// out[r] += sum over the positions [begin, end) of weights[r] * value, for R rows and N vectors of dimensions from
// `first` on, of which `width` are read, straight from the cache.
template <int R, int N, bool kBf16>
void DirectValueBlock(const AttentionTile& tile, const float* weights, int64_t begin, int64_t end, int64_t first,
                      int64_t width, float* out) {
  const int64_t padded = AttentionPaddedDim(tile.head_dim);
  Vec::F sum[R][N];
  VT_UNROLL
  for (int r = 0; r < R; ++r) {
    VT_UNROLL
    for (int n = 0; n < N; ++n) sum[r][n] = Vec::Load(out + r * padded + n * Vec::kLanes);
  }
  for (int64_t group = begin; group < end; group += kGroup) {
    int64_t element = ElementOf(tile, group) + tile.v_offset + first;
    const int64_t count = Min(kGroup, end - group);
    for (int64_t j = 0; j < count; ++j, element += tile.token_stride, ++weights) {
      Vec::F v[N];
      VT_UNROLL
      for (int n = 0; n < N; ++n)
        v[n] = LoadElements<kBf16>(tile.cache, element + n * Vec::kLanes, N > 1 ? int64_t{Vec::kLanes} : width);
      VT_UNROLL
      for (int r = 0; r < R; ++r) {
        const Vec::F factor = Vec::Set(weights[r * kAttentionRange]);
        VT_UNROLL
        for (int n = 0; n < N; ++n) sum[r][n] = Vec::Fma(factor, v[n], sum[r][n]);
      }
    }
  }
  VT_UNROLL
  for (int r = 0; r < R; ++r) {
    VT_UNROLL
    for (int n = 0; n < N; ++n) Vec::Store(out + r * padded + n * Vec::kLanes, sum[r][n]);
  }
}

template <int R, bool kBf16>
void DirectValues(const AttentionTile& tile, const float* weights, int64_t begin, int64_t end, float* out) {
  constexpr int64_t kWide = Vec::kVectors * Vec::kLanes;
  int64_t n = 0;
  for (; n + kWide <= tile.head_dim; n += kWide)
    DirectValueBlock<R, Vec::kVectors, kBf16>(tile, weights, begin, end, n, kWide, out + n);
  for (; n < tile.head_dim; n += Vec::kLanes)
    DirectValueBlock<R, 1, kBf16>(tile, weights, begin, end, n, tile.head_dim - n, out + n);
}

using DirectScoreFn = void (*)(const AttentionTile&, const float*, int64_t, int64_t, float*);
using DirectValueFn = void (*)(const AttentionTile&, const float*, int64_t, int64_t, float*);
template <bool kBf16>
constexpr DirectScoreFn kDirectScores[] = {DirectScores<1, kBf16>, DirectScores<2, kBf16>, DirectScores<3, kBf16>,
                                           DirectScores<4, kBf16>, DirectScores<5, kBf16>, DirectScores<6, kBf16>};
template <bool kBf16>
constexpr DirectValueFn kDirectValues[] = {DirectValues<1, kBf16>, DirectValues<2, kBf16>, DirectValues<3, kBf16>,
                                           DirectValues<4, kBf16>, DirectValues<5, kBf16>, DirectValues<6, kBf16>};

}  // namespace
}  // namespace vt
