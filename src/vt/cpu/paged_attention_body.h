// A tile of paged attention over Vec; the unit includes its vec_*.h first and instantiates the table at its end.
//
// Per range of 256 keys: keys are dequantized and transposed 64 at a time ([head_dim][64], once for all rows of the
// tile), scores are register blocks of 6 rows, softmax runs row by row, and values are dequantized 64 at a time for the
// second product. Every sum runs over head_dim or over keys in rising order from 0, whatever the block shape; a key
// that a row does not see has weight 0 and adds nothing.
#pragma once
#include <cstdint>

#include "vt/cpu/paged_attention_tile.h"
#include "vt/cpu/vec_math.h"
#include "vt/cpu/vec_unroll.h"

namespace vt {
namespace {

constexpr int64_t kSubTile = 64;  // keys that are dequantized at once
constexpr int64_t kGroup = 16;    // positions that lie in one block of the cache
constexpr int kBlockRows = 6;
constexpr float kNoKey = -__builtin_inff();

inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }

// Rows of a partial: values [rows][padded], then maxima [rows], then sums [rows].
struct Rows {
  float* values;
  float* maxima;
  float* sums;
};

inline Rows RowsAt(float* p, int64_t rows, int64_t padded) {
  float* maxima = p + rows * padded;
  return {p, maxima, maxima + (rows + 15) / 16 * 16};
}

struct Scratch {
  float* q;       // blocks of [head_dim][rows of the block]
  float* sub;     // keys [head_dim][64] or values [64][padded]
  float* scores;  // [rows][kAttentionRange]
  Rows range, merged;
};

Scratch Divide(const AttentionTile& tile) {
  const int64_t rows = tile.rows(), padded = AttentionPaddedDim(tile.head_dim);
  Scratch s;
  float* p = tile.scratch;
  s.q = p, p += rows * padded;
  s.sub = p, p += 2 * kSubTile * padded;
  s.scores = p, p += rows * kAttentionRange;
  s.range = RowsAt(p, rows, padded), p += AttentionPartialFloats(rows, tile.head_dim);
  s.merged = RowsAt(p, rows, padded);
  return s;
}

void PackQueries(const AttentionTile& tile, float* packed) {
  const int64_t rows = tile.rows();
  for (int64_t first = 0; first < rows; first += kBlockRows) {
    const int64_t count = Min(kBlockRows, rows - first);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = first + r;
      const float* q = tile.q + row / tile.heads * tile.q_stride + row % tile.heads * tile.head_dim;
      for (int64_t c = 0; c < tile.head_dim; ++c) packed[c * count + r] = q[c] * tile.scale;
    }
    packed += count * tile.head_dim;
  }
}

// Element of the cache where the head of this position begins. Divides: once a group, not once a key.
inline int64_t ElementOf(const AttentionTile& tile, int64_t position) {
  return tile.blocks[position / tile.block_size] * tile.block_stride + position % tile.block_size * tile.token_stride;
}

// Transposes kLanes keys, `stride` floats apart, of which the first `count` are wanted (the others become 0) and
// `width` dwords are read, into columns of keys[dwords][64] (f32) or keys[2 * dwords][64] (pairs of bf16).
template <bool kBf16>
inline __attribute__((always_inline)) void TransposeKeys(const float* source, int64_t stride, int64_t count,
                                                         int64_t width, float* keys) {
  Vec::F v[Vec::kLanes];
  VT_UNROLL
  for (int i = 0; i < Vec::kLanes; ++i)
    v[i] = i >= count             ? Vec::Zero()
           : width == Vec::kLanes ? Vec::Load(source + i * stride)
                                  : Vec::LoadPart(source + i * stride, width);
  Vec::Transpose(v);
  VT_UNROLL
  for (int i = 0; i < Vec::kLanes; ++i) {
    if (i >= width) break;
    if constexpr (kBf16) {
      Vec::Store(keys + 2 * i * kSubTile, Vec::LowBf16(v[i]));
      Vec::Store(keys + (2 * i + 1) * kSubTile, Vec::HighBf16(v[i]));
    } else {
      Vec::Store(keys + i * kSubTile, v[i]);
    }
  }
}

// Keys of kLanes positions from `position` on as columns of keys[head_dim][64]; those from `limit` on are 0.
template <bool kBf16>
void PackKeyVectors(const AttentionTile& tile, int64_t position, int64_t limit, float* keys) {
  constexpr int64_t kPerDword = kBf16 ? 2 : 1;
  const int64_t dwords = tile.head_dim / kPerDword, stride = tile.token_stride / kPerDword;
  const float* source = static_cast<const float*>(tile.cache) + ElementOf(tile, position) / kPerDword;
  const int64_t count = limit - position;
  int64_t c = 0;
  for (; c + Vec::kLanes <= dwords && count >= Vec::kLanes; c += Vec::kLanes)
    TransposeKeys<kBf16>(source + c, stride, Vec::kLanes, Vec::kLanes, keys + kPerDword * c * kSubTile);
  for (; c < dwords; c += Vec::kLanes)
    TransposeKeys<kBf16>(source + c, stride, count, Min(Vec::kLanes, dwords - c), keys + kPerDword * c * kSubTile);
}

template <bool kBf16>
inline Vec::F LoadElements(const void* cache, int64_t element, int64_t width) {
  if constexpr (kBf16) {
    const uint16_t* p = static_cast<const uint16_t*>(cache) + element;
    return width >= Vec::kLanes ? Vec::LoadBf16(p) : Vec::LoadBf16Part(p, width);
  } else {
    const float* p = static_cast<const float*>(cache) + element;
    return width >= Vec::kLanes ? Vec::Load(p) : Vec::LoadPart(p, width);
  }
}

// Values of `count` positions (a multiple of 16) from `position` on as floats [count][padded]; those from `limit` on
// are 0.
template <bool kBf16>
void PackValues(const AttentionTile& tile, int64_t position, int64_t count, int64_t limit, float* values) {
  const int64_t padded = AttentionPaddedDim(tile.head_dim);
  for (int64_t group = 0; group < count; group += kGroup) {
    const int64_t seen = Min(kGroup, limit - position - group);
    int64_t element = ElementOf(tile, position + group) + tile.v_offset;
    for (int64_t j = 0; j < kGroup; ++j, values += padded, element += tile.token_stride) {
      int64_t c = 0;
      if (j < seen)
        for (; c < tile.head_dim; c += Vec::kLanes)
          Vec::Store(values + c, LoadElements<kBf16>(tile.cache, element + c, tile.head_dim - c));
      for (; c < padded; c += Vec::kLanes) Vec::Store(values + c, Vec::Zero());
    }
  }
}

// Asks for the keys (offset 0) or values (offset v_offset) of the positions [begin, end): heads of one token are far
// apart, which the hardware does not foresee.
void Prefetch(const AttentionTile& tile, int64_t begin, int64_t end, int64_t offset) {
  const int64_t bytes = tile.cache_bf16 ? 2 : 4;
  for (int64_t group = begin; group < end; group += kGroup) {
    const char* row = static_cast<const char*>(tile.cache) + (ElementOf(tile, group) + offset) * bytes;
    for (int64_t j = Min(kGroup, end - group); j > 0; --j, row += tile.token_stride * bytes)
      for (int64_t line = 0; line < tile.head_dim * bytes; line += 64) _mm_prefetch(row + line, _MM_HINT_T0);
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

// Turns the scores of columns [begin, end) into weights exp(score - maximum), 0 outside the visible [first, last).
void SoftmaxRow(float* scores, int64_t begin, int64_t end, int64_t first, int64_t last, float softcap, float& maximum,
                float& sum) {
  if (first >= last) {
    for (int64_t j = begin; j < end; ++j) scores[j] = 0;
    maximum = kNoKey, sum = 0;
    return;
  }
  if (softcap > 0) {
    const Vec::F inverse = Vec::Set(1 / softcap), cap = Vec::Set(softcap);
    for (int64_t j = begin; j < end; j += Vec::kLanes)
      Vec::Store(scores + j, Vec::Mul(cap, Tanh(Vec::Mul(Vec::Load(scores + j), inverse))));
  }
  for (int64_t j = begin; j < first; ++j) scores[j] = kNoKey;
  for (int64_t j = last; j < end; ++j) scores[j] = kNoKey;
  Vec::F largest = Vec::Load(scores + begin);
  for (int64_t j = begin + Vec::kLanes; j < end; j += Vec::kLanes) largest = Vec::Max(largest, Vec::Load(scores + j));
  maximum = Vec::Largest(largest);
  const Vec::F shift = Vec::Set(maximum);
  Vec::F total = Vec::Zero();
  for (int64_t j = begin; j < end; j += Vec::kLanes) {
    const Vec::F weight = Exp(Vec::Sub(Vec::Load(scores + j), shift));
    Vec::Store(scores + j, weight);
    total = Vec::Add(total, weight);
  }
  sum = Vec::Sum(total);
}

// One range of one tile: fills `result` for every row.
void AttendRange(const AttentionTile& tile, const Scratch& scratch, int64_t range, const Rows& result) {
  const int64_t rows = tile.rows(), padded = AttentionPaddedDim(tile.head_dim), base = range * kAttentionRange;
  const int64_t oldest = tile.window > 0 ? Max(0, tile.first_position - tile.window + 1) : 0;
  // Visible to any row, and the same in columns of the range, widened to whole groups of 16.
  const int64_t limit = Min(base + kAttentionRange, tile.first_position + tile.tokens);
  const int64_t begin = Max(base, oldest) / 16 * 16 - base, end = (limit - base + 15) / 16 * 16;
  const int64_t limit_next = Min(base + 2 * kAttentionRange, tile.first_position + tile.tokens);
  for (int64_t sub = begin; sub < end; sub += kSubTile) {
    const int64_t count = Min(kSubTile, end - sub);
    Prefetch(tile, base + sub, Min(base + sub + count, limit), tile.v_offset);
    for (int64_t j = 0; j < count; j += Vec::kLanes)
      (tile.cache_bf16 ? PackKeyVectors<true> : PackKeyVectors<false>)(tile, base + sub + j, limit, scratch.sub + j);
    for (int64_t row = 0; row < rows; row += kBlockRows)
      kScoreRows[Min(kBlockRows, rows - row) - 1](scratch.q + row * tile.head_dim, scratch.sub, count, tile.head_dim,
                                                  scratch.scores + row * kAttentionRange + sub);
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t position = tile.first_position + row / tile.heads;
    const int64_t first = tile.window > 0 ? Max(0, position - tile.window + 1) : 0;
    SoftmaxRow(scratch.scores + row * kAttentionRange, begin, end, Max(begin, first - base),
               Min(end, position + 1 - base), tile.softcap, result.maxima[row], result.sums[row]);
  }
  for (int64_t i = 0; i < rows * padded; i += Vec::kLanes) Vec::Store(result.values + i, Vec::Zero());
  for (int64_t sub = begin; sub < end; sub += kSubTile) {
    const int64_t count = Min(kSubTile, end - sub);
    Prefetch(tile, base + sub + kAttentionRange, Min(base + sub + kAttentionRange + count, limit_next), 0);
    (tile.cache_bf16 ? PackValues<true> : PackValues<false>)(tile, base + sub, count, limit, scratch.sub);
    for (int64_t row = 0; row < rows; row += kBlockRows)
      kValueRows[Min(kBlockRows, rows - row) - 1](scratch.scores + row * kAttentionRange + sub, scratch.sub, count,
                                                  padded, result.values + row * padded);
  }
}

void ClearRows(const Rows& merged, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row) merged.maxima[row] = kNoKey, merged.sums[row] = 0;
}

// Adds the next range to the rows merged so far.
void MergeRows(const Rows& merged, const Rows& range, int64_t rows, int64_t padded) {
  for (int64_t row = 0; row < rows; ++row) {
    if (range.maxima[row] == kNoKey) continue;
    float* into = merged.values + row * padded;
    const float* from = range.values + row * padded;
    if (merged.maxima[row] == kNoKey) {
      for (int64_t c = 0; c < padded; c += Vec::kLanes) Vec::Store(into + c, Vec::Load(from + c));
      merged.maxima[row] = range.maxima[row], merged.sums[row] = range.sums[row];
      continue;
    }
    const float maximum = merged.maxima[row] > range.maxima[row] ? merged.maxima[row] : range.maxima[row];
    const Vec::F old_factor = Exp(Vec::Set(merged.maxima[row] - maximum));
    const Vec::F new_factor = Exp(Vec::Set(range.maxima[row] - maximum));
    for (int64_t c = 0; c < padded; c += Vec::kLanes)
      Vec::Store(into + c, Vec::Fma(Vec::Load(from + c), new_factor, Vec::Mul(Vec::Load(into + c), old_factor)));
    merged.sums[row] =
        Vec::First(Vec::Fma(Vec::Set(range.sums[row]), new_factor, Vec::Mul(Vec::Set(merged.sums[row]), old_factor)));
    merged.maxima[row] = maximum;
  }
}

void WriteRows(const AttentionTile& tile, const Rows& merged) {
  const int64_t rows = tile.rows(), padded = AttentionPaddedDim(tile.head_dim);
  for (int64_t row = 0; row < rows; ++row) {
    float* out = tile.out + row / tile.heads * tile.out_stride + row % tile.heads * tile.head_dim;
    const float* values = merged.values + row * padded;
    const Vec::F sum = Vec::Set(merged.sums[row]);
    for (int64_t c = 0; c < tile.head_dim; c += Vec::kLanes) {
      const Vec::F v = Vec::Div(Vec::Load(values + c), sum);
      const int64_t width = tile.head_dim - c;
      if (width >= Vec::kLanes)
        Vec::Store(out + c, v);
      else
        Vec::StorePart(out + c, v, width);
    }
  }
}

void Run(const AttentionTile& tile, int64_t begin, int64_t end, float* partials) {
  const int64_t rows = tile.rows(), padded = AttentionPaddedDim(tile.head_dim);
  const Scratch scratch = Divide(tile);
  PackQueries(tile, scratch.q);
  if (partials != nullptr) {
    for (int64_t range = begin; range < end; ++range, partials += AttentionPartialFloats(rows, tile.head_dim))
      AttendRange(tile, scratch, range, RowsAt(partials, rows, padded));
    return;
  }
  ClearRows(scratch.merged, rows);
  for (int64_t range = begin; range < end; ++range) {
    AttendRange(tile, scratch, range, scratch.range);
    MergeRows(scratch.merged, scratch.range, rows, padded);
  }
  WriteRows(tile, scratch.merged);
}

void Finish(const AttentionTile& tile, const float* partials, int64_t ranges) {
  const int64_t rows = tile.rows(), padded = AttentionPaddedDim(tile.head_dim);
  const Scratch scratch = Divide(tile);
  ClearRows(scratch.merged, rows);
  for (int64_t i = 0; i < ranges; ++i)
    MergeRows(scratch.merged,
              RowsAt(const_cast<float*>(partials) + i * AttentionPartialFloats(rows, tile.head_dim), rows, padded),
              rows, padded);
  WriteRows(tile, scratch.merged);
}

constexpr AttentionKernels kTable = {Run, Finish};

}  // namespace
}  // namespace vt
