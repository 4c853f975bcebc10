// How a tile of paged attention reads the cache: rows of one head, keys transposed, bf16 widened. Over Vec: the unit
// includes its vec_*.h first.
#pragma once
#include <cstdint>

#include "vt/cpu/paged_attention_tile.h"
#include "vt/cpu/vec_unroll.h"

namespace vt {
namespace {

constexpr int64_t kSubTile = 64;  // keys that are dequantized at once
constexpr int64_t kGroup = 16;    // positions that lie in one block of the cache
constexpr int kBlockRows = 6;

inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }

// Element of the cache where the head of this position begins. Divides: once a group, not once a key.
inline int64_t ElementOf(const AttentionTile& tile, int64_t position) {
  return tile.blocks[position / tile.block_size] * tile.block_stride + position % tile.block_size * tile.token_stride;
}

// Transposes kLanes keys, `stride` floats apart, of which the first `count` are wanted (the others become 0) and
// `width` dwords are read: v[i] holds dword i of every key.
inline __attribute__((always_inline)) void LoadTransposed(const float* source, int64_t stride, int64_t count,
                                                          int64_t width, Vec::F (&v)[Vec::kLanes]) {
  VT_UNROLL
  for (int i = 0; i < Vec::kLanes; ++i, source += stride)
    v[i] = i >= count ? Vec::Zero() : width == Vec::kLanes ? Vec::Load(source) : Vec::LoadPart(source, width);
  Vec::Transpose(v);
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

}  // namespace
}  // namespace vt
