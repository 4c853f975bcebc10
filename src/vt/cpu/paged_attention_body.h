// A tile of paged attention over Vec; the unit includes its vec_*.h first and instantiates the table at its end.
//
// Per range of 256 keys: scores of all rows, softmax row by row, weighted values; then the range merges into the rows.
// K and V are read once for the whole tile. Every sum runs over head_dim or over keys in rising order; a key that a row
// does not see has weight 0 and adds nothing.
#pragma once
#include <cstdint>

#include "vt/cpu/paged_attention_direct.h"
#include "vt/cpu/paged_attention_packed.h"
#include "vt/cpu/paged_attention_tile.h"
#include "vt/cpu/vec_math.h"

namespace vt {
namespace {

constexpr float kNoKey = -__builtin_inff();

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

// Columns of a range that any row of the tile may see, widened to whole groups of 16, and where its positions end.
struct Columns {
  int64_t base, begin, end;   // position of column 0; columns
  int64_t limit, next_limit;  // positions: behind the last one to read, in this and the next range
};

Columns ColumnsOf(const AttentionTile& tile, int64_t range) {
  const int64_t base = range * kAttentionRange, last = tile.first_position + tile.tokens;
  const int64_t oldest = tile.window > 0 ? Max(0, tile.first_position - tile.window + 1) : 0;
  const int64_t limit = Min(base + kAttentionRange, last);
  return {base, Max(base, oldest) / kGroup * kGroup - base, (limit - base + kGroup - 1) / kGroup * kGroup, limit,
          Min(base + 2 * kAttentionRange, last)};
}

void PackedScores(const AttentionTile& tile, const Scratch& scratch, const Columns& columns) {
  const int64_t rows = tile.rows();
  for (int64_t sub = columns.begin; sub < columns.end; sub += kSubTile) {
    const int64_t count = Min(kSubTile, columns.end - sub), position = columns.base + sub;
    Prefetch(tile, position, Min(position + count, columns.limit), tile.v_offset);
    for (int64_t j = 0; j < count; j += Vec::kLanes)
      (tile.cache_bf16 ? PackKeyVectors<true> : PackKeyVectors<false>)(tile, position + j, columns.limit,
                                                                       scratch.sub + j);
    for (int64_t row = 0; row < rows; row += kBlockRows)
      kScoreRows[Min(kBlockRows, rows - row) - 1](scratch.q + row * tile.head_dim, scratch.sub, count, tile.head_dim,
                                                  scratch.scores + row * kAttentionRange + sub);
  }
}

void PackedValues(const AttentionTile& tile, const Scratch& scratch, const Columns& columns, float* values) {
  const int64_t rows = tile.rows(), padded = AttentionPaddedDim(tile.head_dim);
  for (int64_t sub = columns.begin; sub < columns.end; sub += kSubTile) {
    const int64_t count = Min(kSubTile, columns.end - sub), position = columns.base + sub;
    Prefetch(tile, position + kAttentionRange, Min(position + kAttentionRange + count, columns.next_limit), 0);
    (tile.cache_bf16 ? PackValues<true> : PackValues<false>)(tile, position, count, columns.limit, scratch.sub);
    for (int64_t row = 0; row < rows; row += kBlockRows)
      kValueRows[Min(kBlockRows, rows - row) - 1](scratch.scores + row * kAttentionRange + sub, scratch.sub, count,
                                                  padded, values + row * padded);
  }
}

// One range of one tile: fills `result` for every row. Both ways sum in the same order, so they give the same bits.
void AttendRange(const AttentionTile& tile, const Scratch& scratch, int64_t range, const Rows& result) {
  const int64_t rows = tile.rows(), padded = AttentionPaddedDim(tile.head_dim);
  const Columns columns = ColumnsOf(tile, range);
  const bool direct = rows <= kBlockRows;
  if (direct) {
    const DirectScoreFn scores = (tile.cache_bf16 ? kDirectScores<true> : kDirectScores<false>)[rows - 1];
    for (int64_t j = columns.begin; j < columns.end; j += Vec::kLanes) {
      const int64_t position = columns.base + j;
      Prefetch(tile, position, Min(position + Vec::kLanes, columns.limit), tile.v_offset);
      scores(tile, scratch.q, position, columns.limit, scratch.scores + j);
    }
  } else {
    PackedScores(tile, scratch, columns);
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t position = tile.first_position + row / tile.heads;
    const int64_t first = tile.window > 0 ? Max(0, position - tile.window + 1) : 0;
    SoftmaxRow(scratch.scores + row * kAttentionRange, columns.begin, columns.end,
               Max(columns.begin, first - columns.base), Min(columns.end, position + 1 - columns.base), tile.softcap,
               result.maxima[row], result.sums[row]);
  }
  for (int64_t i = 0; i < rows * padded; i += Vec::kLanes) Vec::Store(result.values + i, Vec::Zero());
  if (!direct) return PackedValues(tile, scratch, columns, result.values);
  const int64_t position = columns.base + columns.begin, next = position + kAttentionRange;
  Prefetch(tile, next, Min(columns.base + columns.end + kAttentionRange, columns.next_limit), 0);
  (tile.cache_bf16 ? kDirectValues<true> : kDirectValues<false>)[rows - 1](tile, scratch.scores + columns.begin,
                                                                           position, columns.limit, result.values);
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
