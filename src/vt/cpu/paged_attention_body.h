// A tile of paged attention over Vec; the unit includes its vec_*.h first and instantiates the table at its end.
//
// Per range of 256 keys: scores of all rows, softmax row by row, weighted values; then the range merges into the rows.
// K and V are read once for the whole tile. Every sum runs over head_dim or over keys in rising order; a key that a row
// does not see has weight 0 and adds nothing.
#pragma once
#include <cstdint>

#include "vt/cpu/paged_attention_direct.h"
#include "vt/cpu/paged_attention_i8.h"
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
  // With i8 only.
  int16_t* q16;                      // [rows][padded], in the place of q
  float *key_scales, *value_scales;  // [kAttentionRange], 0 behind the last position
  float *query_scales, *sum_scales;  // [rows]
  int16_t* weights;                  // [rows][kAttentionRange]
};

Scratch Divide(const AttentionTile& tile) {
  const int64_t rows = tile.rows(), padded = AttentionPaddedDim(tile.head_dim), rows16 = (rows + 15) / 16 * 16;
  Scratch s;
  float* p = tile.scratch;
  s.q = p, s.q16 = reinterpret_cast<int16_t*>(p), p += rows * padded;
  s.sub = p, p += 2 * kSubTile * padded;
  s.scores = p, p += rows * kAttentionRange;
  s.range = RowsAt(p, rows, padded), p += AttentionPartialFloats(rows, tile.head_dim);
  s.merged = RowsAt(p, rows, padded), p += AttentionPartialFloats(rows, tile.head_dim);
  s.key_scales = p, p += kAttentionRange;
  s.value_scales = p, p += kAttentionRange;
  s.query_scales = p, p += rows16;
  s.sum_scales = p, p += rows16;
  s.weights = reinterpret_cast<int16_t*>(p);
  return s;
}

const float* QueryOf(const AttentionTile& tile, int64_t row) {
  return tile.q + row / tile.heads * tile.q_stride + row % tile.heads * tile.head_dim;
}

// What the elements of the cache must be multiplied with; a power of two, so it costs no digit anywhere.
float FactorOf(const AttentionTile& tile) { return tile.kv.element == KvElement::kE4m3 ? ElementE4m3::kFactor : 1.0f; }

void PackQueries(const AttentionTile& tile, const Scratch& scratch) {
  const int64_t rows = tile.rows();
  if (tile.kv.element == KvElement::kI8) {
    const int64_t padded = AttentionPaddedDim(tile.head_dim);
    for (int64_t row = 0; row < rows; ++row)
      scratch.query_scales[row] = RoundToI16(QueryOf(tile, row), tile.head_dim, tile.scale, scratch.q16 + row * padded);
    return;
  }
  const float scale = tile.scale * FactorOf(tile);
  float* packed = scratch.q;
  for (int64_t first = 0; first < rows; first += kBlockRows) {
    const int64_t count = Min(kBlockRows, rows - first);
    for (int64_t r = 0; r < count; ++r) {
      const float* q = QueryOf(tile, first + r);
      for (int64_t c = 0; c < tile.head_dim; ++c) packed[c * count + r] = q[c] * scale;
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

template <class E>
void PackedScores(const AttentionTile& tile, const Scratch& scratch, const Columns& columns) {
  const int64_t rows = tile.rows();
  for (int64_t sub = columns.begin; sub < columns.end; sub += kSubTile) {
    const int64_t count = Min(kSubTile, columns.end - sub), position = columns.base + sub;
    Prefetch(tile, position, Min(position + count, columns.limit), tile.kv.value_offset);
    for (int64_t j = 0; j < count; j += Vec::kLanes) PackKeyVectors<E>(tile, position + j, scratch.sub + j);
    for (int64_t row = 0; row < rows; row += kBlockRows)
      kScoreRows[Min(kBlockRows, rows - row) - 1](scratch.q + row * tile.head_dim, scratch.sub, count, tile.head_dim,
                                                  scratch.scores + row * kAttentionRange + sub);
  }
}

template <class E>
void PackedValues(const AttentionTile& tile, const Scratch& scratch, const Columns& columns, float* values) {
  const int64_t rows = tile.rows(), padded = AttentionPaddedDim(tile.head_dim);
  for (int64_t sub = columns.begin; sub < columns.end; sub += kSubTile) {
    const int64_t count = Min(kSubTile, columns.end - sub), position = columns.base + sub;
    Prefetch(tile, position + kAttentionRange, Min(position + kAttentionRange + count, columns.next_limit), 0);
    PackValues<E>(tile, position, count, columns.limit, scratch.sub);
    for (int64_t row = 0; row < rows; row += kBlockRows)
      kValueRows[Min(kBlockRows, rows - row) - 1](scratch.scores + row * kAttentionRange + sub, scratch.sub, count,
                                                  padded, values + row * padded);
  }
}

// Makes the scores of keys that hold the code 0x7f, NaN in E4M3, NaN.
void MarkNanKeys(const AttentionTile& tile, const Scratch& scratch, const Columns& columns) {
  for (int64_t j = columns.begin; j < columns.end; j += kGroup) {
    const uint8_t* unit = KeyUnit(tile, columns.base + j);
    if (!Vec::AnyByteIs7f(unit, tile.kv.unit_bytes)) continue;
    for (int64_t t = 0; t < kGroup; ++t)
      for (int64_t i = 0; i < tile.head_dim; ++i)
        if (unit[i / 2 * (2 * kGroup) + t * 2 + i % 2] == 0x7f)
          for (int64_t row = 0; row < tile.rows(); ++row)
            scratch.scores[row * kAttentionRange + j + t] = __builtin_nanf("");
  }
}

// Weights of all rows from their scores, with each row's maximum and sum.
void SoftmaxRows(const AttentionTile& tile, const Scratch& scratch, const Columns& columns, const Rows& result) {
  for (int64_t row = 0; row < tile.rows(); ++row) {
    const int64_t position = tile.first_position + row / tile.heads;
    const int64_t first = tile.window > 0 ? Max(0, position - tile.window + 1) : 0;
    SoftmaxRow(scratch.scores + row * kAttentionRange, columns.begin, columns.end,
               Max(columns.begin, first - columns.base), Min(columns.end, position + 1 - columns.base), tile.softcap,
               result.maxima[row], result.sums[row]);
  }
}

void ClearValues(const Rows& result, int64_t floats) {
  for (int64_t i = 0; i < floats; i += Vec::kLanes) Vec::Store(result.values + i, Vec::Zero());
}

// One range of one tile: fills `result` for every row. Both ways sum in the same order, so they give the same bits.
template <class E>
void AttendRange(const AttentionTile& tile, const Scratch& scratch, int64_t range, const Rows& result) {
  const int64_t rows = tile.rows(), padded = AttentionPaddedDim(tile.head_dim);
  const Columns columns = ColumnsOf(tile, range);
  const bool direct = rows <= kBlockRows;
  if (direct)
    kDirectScores<E>[rows - 1](tile, scratch.q, columns.base, columns.begin, columns.end, scratch.scores);
  else
    PackedScores<E>(tile, scratch, columns);
  if constexpr (E::kHidesNan) MarkNanKeys(tile, scratch, columns);
  SoftmaxRows(tile, scratch, columns, result);
  ClearValues(result, rows * padded);
  if (!direct) return PackedValues<E>(tile, scratch, columns, result.values);
  kDirectValues<E>[rows - 1](tile, scratch.scores + columns.begin, columns.base + columns.begin, columns.limit,
                             columns.next_limit, result.values);
}

// The scales of a range's keys and values; 0 behind the last position, where nobody wrote.
void LoadScales(const AttentionTile& tile, const Scratch& scratch, const Columns& columns) {
  for (int64_t j = columns.begin; j < columns.end; j += kGroup) {
    const float* keys = reinterpret_cast<const float*>(KeyUnit(tile, columns.base + j) + kGroup * tile.head_dim);
    const float* values = keys + tile.kv.value_offset / int64_t{sizeof(float)};
    const int64_t seen = columns.limit - columns.base - j;
    for (int64_t t = 0; t < kGroup; ++t) {
      scratch.key_scales[j + t] = t < seen ? keys[t] : 0;
      scratch.value_scales[j + t] = t < seen ? values[t] : 0;
    }
  }
}

// The same with a cache of i8.
void AttendRangeI8(const AttentionTile& tile, const Scratch& scratch, int64_t range, const Rows& result) {
  const int64_t rows = tile.rows(), padded = AttentionPaddedDim(tile.head_dim);
  const Columns columns = ColumnsOf(tile, range);
  LoadScales(tile, scratch, columns);
  for (int64_t sub = columns.begin; sub < columns.end; sub += kSubTile) {
    const int64_t end = Min(columns.end, sub + kSubTile);
    for (int64_t row = 0; row < rows; row += kBlockRows)
      kI8Scores[Min(kBlockRows, rows - row) - 1](tile, scratch.q16 + row * padded, scratch.query_scales + row,
                                                 columns.base, sub, end, scratch.key_scales,
                                                 scratch.scores + row * kAttentionRange);
  }
  SoftmaxRows(tile, scratch, columns, result);
  for (int64_t row = 0; row < rows; ++row) {
    float* weights = scratch.scores + row * kAttentionRange;
    for (int64_t j = columns.begin; j < columns.end; j += Vec::kLanes)
      Vec::Store(weights + j, Vec::Mul(Vec::Load(weights + j), Vec::Load(scratch.value_scales + j)));
    scratch.sum_scales[row] = RoundToI16(weights + columns.begin, columns.end - columns.begin, 1,
                                         scratch.weights + row * kAttentionRange + columns.begin);
  }
  ClearValues(result, rows * padded);
  int32_t* const sums = reinterpret_cast<int32_t*>(result.values);
  for (int64_t sub = columns.begin; sub < columns.end; sub += kSubTile) {
    const int64_t begin = columns.base + sub, end = columns.base + Min(columns.end, sub + kSubTile);
    for (int64_t row = 0; row < rows; row += kBlockRows)
      kI8Values[Min(kBlockRows, rows - row) - 1](tile, scratch.weights + row * kAttentionRange + sub, begin, end,
                                                 row == 0 ? columns.next_limit : 0, sums + row * padded);
  }
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = row * padded; i < (row + 1) * padded; i += Vec::kLanes)
      Vec::Store(result.values + i, Vec::Mul(Vec::ToFloat(Vec::LoadN(sums + i)), Vec::Set(scratch.sum_scales[row])));
}

using AttendFn = void (*)(const AttentionTile&, const Scratch&, int64_t, const Rows&);

AttendFn AttendOf(KvElement element) {
  switch (element) {
    case KvElement::kF32:
      return AttendRange<ElementF32>;
    case KvElement::kF16:
      return AttendRange<ElementF16>;
    case KvElement::kBf16:
      return AttendRange<ElementBf16>;
    case KvElement::kE4m3:
      return AttendRange<ElementE4m3>;
    case KvElement::kE5m2:
      return AttendRange<ElementE5m2>;
    case KvElement::kI8:
      break;
  }
  return AttendRangeI8;
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
    const Vec::F sum = Vec::Set(merged.sums[row]), factor = Vec::Set(FactorOf(tile));
    for (int64_t c = 0; c < tile.head_dim; c += Vec::kLanes) {
      const Vec::F v = Vec::Div(Vec::Mul(Vec::Load(values + c), factor), sum);
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
  PackQueries(tile, scratch);
  const AttendFn attend = AttendOf(tile.kv.element);
  if (partials != nullptr) {
    for (int64_t range = begin; range < end; ++range, partials += AttentionPartialFloats(rows, tile.head_dim))
      attend(tile, scratch, range, RowsAt(partials, rows, padded));
    return;
  }
  ClearRows(scratch.merged, rows);
  for (int64_t range = begin; range < end; ++range) {
    attend(tile, scratch, range, scratch.range);
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
