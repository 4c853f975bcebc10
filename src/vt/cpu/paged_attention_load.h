// How a tile of paged attention reads the cache (KvPage): the elements as pairs of vectors of floats. Over Vec: the
// unit includes its vec_*.h first.
#pragma once
#include <cstdint>

#include "vt/cpu/paged_attention_tile.h"
#include "vt/cpu/vec_unroll.h"

namespace vt {
namespace {

constexpr int64_t kSubTile = 64;  // keys that are dequantized at once
constexpr int64_t kGroup = 16;    // tokens of a unit of the cache
constexpr int kBlockRows = 6;

inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }

// The page of a position. Divides, as all of these: once a unit, not once a key.
inline const uint8_t* PageOf(const AttentionTile& tile, int64_t position) {
  return tile.kv.cache + tile.blocks[position / tile.kv.block_size] * tile.kv.page_bytes;
}
// The unit that holds the position's key.
inline const uint8_t* KeyUnit(const AttentionTile& tile, int64_t position) {
  return PageOf(tile, position) + tile.kv_head * tile.kv.head_bytes +
         position % tile.kv.block_size / kGroup * tile.kv.unit_bytes;
}
inline const uint8_t* ValueUnit(const AttentionTile& tile, int64_t position) {
  return KeyUnit(tile, position) + tile.kv.value_offset;
}
// An element type:
//   Keys    dimensions 2 * pair and 2 * pair + 1 of kLanes tokens from `lane` on
//   Values  dimensions c .. c + n - 1, n <= kLanes, of the tokens t (even) and t + 1
//   kFactor what the floats must be multiplied with, a power of two
//   kHidesNan  a NaN comes out as a number
struct ElementF32 {
  static constexpr float kFactor = 1;
  static constexpr bool kHidesNan = false;
  static void Keys(const uint8_t* unit, int64_t pair, int64_t lane, Vec::F& a, Vec::F& b) {
    const float* p = reinterpret_cast<const float*>(unit) + pair * (2 * kGroup) + lane;
    a = Vec::Load(p), b = Vec::Load(p + kGroup);
  }
  static void Values(const uint8_t* unit, int64_t t, int64_t c, int64_t head_dim, int64_t n, Vec::F& a, Vec::F& b) {
    const float* p = reinterpret_cast<const float*>(unit) + t * head_dim + c;
    a = n >= Vec::kLanes ? Vec::Load(p) : Vec::LoadPart(p, n);
    b = n >= Vec::kLanes ? Vec::Load(p + head_dim) : Vec::LoadPart(p + head_dim, n);
  }
};

struct ElementF16 {
  static constexpr float kFactor = 1;
  static constexpr bool kHidesNan = false;
  static void Keys(const uint8_t* unit, int64_t pair, int64_t lane, Vec::F& a, Vec::F& b) {
    const uint16_t* p = reinterpret_cast<const uint16_t*>(unit) + pair * (2 * kGroup) + lane;
    a = Vec::LoadHalf(p), b = Vec::LoadHalf(p + kGroup);
  }
  static void Values(const uint8_t* unit, int64_t t, int64_t c, int64_t head_dim, int64_t n, Vec::F& a, Vec::F& b) {
    const uint16_t* p = reinterpret_cast<const uint16_t*>(unit) + t * head_dim + c;
    a = n >= Vec::kLanes ? Vec::LoadHalf(p) : Vec::LoadHalfPart(p, n);
    b = n >= Vec::kLanes ? Vec::LoadHalf(p + head_dim) : Vec::LoadHalfPart(p + head_dim, n);
  }
};

struct ElementBf16 {
  static constexpr float kFactor = 1;
  static constexpr bool kHidesNan = false;
  static void Keys(const uint8_t* unit, int64_t pair, int64_t lane, Vec::F& a, Vec::F& b) {
    Vec::LoadBf16Pairs(unit + pair * (4 * kGroup) + lane * 4, a, b);
  }
  static void Values(const uint8_t* unit, int64_t t, int64_t c, int64_t head_dim, int64_t n, Vec::F& a, Vec::F& b) {
    const uint16_t* p = reinterpret_cast<const uint16_t*>(unit) + t * head_dim + c;
    a = n >= Vec::kLanes ? Vec::LoadBf16(p) : Vec::LoadBf16Part(p, n);
    b = n >= Vec::kLanes ? Vec::LoadBf16(p + head_dim) : Vec::LoadBf16Part(p + head_dim, n);
  }
};

struct ElementE5m2 {
  static constexpr float kFactor = 1;
  static constexpr bool kHidesNan = false;
  static void Keys(const uint8_t* unit, int64_t pair, int64_t lane, Vec::F& a, Vec::F& b) {
    Vec::LoadE5m2Pairs(unit + pair * (2 * kGroup) + lane * 2, a, b);
  }
  static void Values(const uint8_t* unit, int64_t t, int64_t c, int64_t head_dim, int64_t n, Vec::F& a, Vec::F& b) {
    const uint8_t* p = unit + t * head_dim + c * 2;
    n >= Vec::kLanes ? Vec::LoadE5m2Pairs(p, a, b) : Vec::LoadE5m2PairsPart(p, n, a, b);
  }
};

struct ElementE4m3 {
  static constexpr float kFactor = 256;
  static constexpr bool kHidesNan = true;
  static void Keys(const uint8_t* unit, int64_t pair, int64_t lane, Vec::F& a, Vec::F& b) {
    Vec::LoadE4m3Pairs(unit + pair * (2 * kGroup) + lane * 2, a, b);
  }
  static void Values(const uint8_t* unit, int64_t t, int64_t c, int64_t head_dim, int64_t n, Vec::F& a, Vec::F& b) {
    const uint8_t* p = unit + t * head_dim + c * 2;
    n >= Vec::kLanes ? Vec::LoadE4m3Pairs(p, a, b) : Vec::LoadE4m3PairsPart(p, n, a, b);
  }
};

// Asks for the cache lines from `begin` on.
inline void PrefetchLines(const uint8_t* begin, int64_t bytes) {
  for (int64_t line = 0; line < bytes; line += 64)
    _mm_prefetch(reinterpret_cast<const char*>(begin + line), _MM_HINT_T0);
}

// Asks for the keys (offset 0) or values (kv.value_offset) of the positions [begin, end).
void Prefetch(const AttentionTile& tile, int64_t begin, int64_t end, int64_t offset) {
  for (int64_t position = begin; position < end; position += kGroup) {
    PrefetchLines(KeyUnit(tile, position) + offset, tile.kv.unit_bytes);
  }
}

// The unit of keys one range behind the position, which the next range reads, if it lies before `limit`; else null.
inline const uint8_t* KeysAhead(const AttentionTile& tile, int64_t position, int64_t limit) {
  return position + kAttentionRange < limit ? KeyUnit(tile, position + kAttentionRange) : nullptr;
}

}  // namespace
}  // namespace vt
