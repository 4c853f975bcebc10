// One tile of paged attention per instruction set: plain structs and a function table, so that units see no library
// code.
#pragma once
#include <cstdint>

#include "vt/cpu/kv_places.h"

namespace vt {

// Keys are taken in ranges of absolute positions [256 r, 256 (r + 1)). A query row's maximum, sum and weighted values
// are formed within each range and merged in rising order, so its result depends on nothing but its own sequence: not
// on the batch, the chunk, the tile or the split over workers.
inline constexpr int64_t kAttentionRange = 256;
// Query rows of a tile at most; a row is one head of one token.
inline constexpr int64_t kAttentionRows = 96;
inline constexpr int64_t kAttentionMaxHeadDim = 256;

// `tokens` consecutive queries of one sequence and `heads` heads that share one kv head. Strides are in elements.
struct AttentionTile {
  const float* q = nullptr;  // first head of the first token
  int64_t q_stride = 0;      // from token to token
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t tokens = 0, heads = 0, head_dim = 0;
  int64_t first_position = 0;  // of the first token
  int64_t window = 0;          // 0: none
  float scale = 0, softcap = 0;
  KvPlaces kv = {};
  int64_t kv_head = 0;
  const int32_t* blocks = nullptr;  // of the sequence
  float* scratch = nullptr;         // AttentionScratchFloats, 64-byte aligned

  int64_t rows() const { return tokens * heads; }
};

// Vectors of values are padded to whole AVX-512 vectors.
constexpr int64_t AttentionPaddedDim(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }
// Floats that one range of a tile leaves behind: values, maximum and sum of each row, each aligned to 64 bytes.
constexpr int64_t AttentionPartialFloats(int64_t rows, int64_t head_dim) {
  return rows * AttentionPaddedDim(head_dim) + 2 * ((rows + 15) / 16 * 16);
}
constexpr int64_t AttentionScratchFloats(int64_t rows, int64_t head_dim) {
  const int64_t padded = AttentionPaddedDim(head_dim);
  // Packed queries, a sub-tile of 64 keys, one of 64 values, scores, the range's and the merged rows; for i8 the scales
  // of a range's keys and values, those of the rows, and the rows' weights as 16-bit numbers.
  return rows * padded + 2 * 64 * padded + rows * kAttentionRange + 2 * AttentionPartialFloats(rows, head_dim) +
         2 * kAttentionRange + 2 * ((rows + 15) / 16 * 16) + rows * kAttentionRange / 2 + 64;
}

// noexcept; thread-safe on tiles with scratch of their own.
struct AttentionKernels {
  // Attends over the ranges [begin, end). Partials null: merges them and writes `out`; else leaves each range's partial
  // at partials + (range - begin) * AttentionPartialFloats.
  void (*run)(const AttentionTile& tile, int64_t begin, int64_t end, float* partials) = nullptr;
  // Merges `ranges` consecutive partials and writes `out`.
  void (*finish)(const AttentionTile& tile, const float* partials, int64_t ranges) = nullptr;
};

extern const AttentionKernels kAttentionKernelsAvx2;
extern const AttentionKernels kAttentionKernelsAvx512;
extern const AttentionKernels kAttentionKernelsAvx512Vnni;

}  // namespace vt
