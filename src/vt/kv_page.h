// The bytes of a KV cache page: what one block of tokens keeps for one layer.
#pragma once
#include <cstdint>

#include "vt/dtype.h"

namespace vt {

enum class KvKind : int8_t { kKey, kValue };

// Elements are f32, f16, bf16, f8_e4m3, f8_e5m2 or i8. First the keys of head after head, then the values of head after
// head, in units of 16 tokens; with i8 a unit ends with one f32 scale for each token, so that an element is scale * i8.
// Within a unit a vector holds one place of neighbouring tokens (keys) or of neighbouring dimensions (values):
//   keys    f32, f16   [dimension][16 tokens]
//           others     [pair of dimensions][16 tokens][2 dimensions]
//   values  8 bits     [pair of tokens][dimension][2 tokens]
//           others     [token][dimension]
struct KvPage {
  static constexpr int kUnit = 16;

  DType dtype = DType::kBF16;
  int block_size = 0;  // tokens, a multiple of kUnit
  int kv_heads = 0;
  int head_dim = 0;  // even

  constexpr bool scaled() const { return dtype == DType::kI8; }
  constexpr int64_t element_bytes() const { return DTypeBytes(dtype); }
  constexpr int64_t unit_bytes() const {
    return kUnit * (element_bytes() * head_dim + (scaled() ? int64_t{sizeof(float)} : 0));
  }
  constexpr int64_t head_bytes() const { return block_size / kUnit * unit_bytes(); }
  constexpr int64_t bytes() const { return 2 * kv_heads * head_bytes(); }

  // Byte offsets from the page's first byte; `token` counts within the block.
  constexpr int64_t Offset(KvKind kind, int64_t head, int64_t token, int64_t i) const {
    const int64_t unit = UnitOffset(kind, head, token), t = token % kUnit;
    if (kind == KvKind::kKey) {
      const bool pairs = dtype != DType::kF32 && dtype != DType::kF16;
      return unit + (pairs ? i / 2 * (2 * kUnit) + t * 2 + i % 2 : i * kUnit + t) * element_bytes();
    }
    return unit + (element_bytes() == 1 ? t / 2 * (2 * head_dim) + i * 2 + t % 2 : t * head_dim + i) * element_bytes();
  }
  // Of the scale of a token's head; only with scaled().
  constexpr int64_t ScaleOffset(KvKind kind, int64_t head, int64_t token) const {
    return UnitOffset(kind, head, token) + kUnit * int64_t{head_dim} + token % kUnit * int64_t{sizeof(float)};
  }
  constexpr int64_t UnitOffset(KvKind kind, int64_t head, int64_t token) const {
    return (static_cast<int64_t>(kind) * kv_heads + head) * head_bytes() + token / kUnit * unit_bytes();
  }

  friend bool operator==(const KvPage&, const KvPage&) = default;
};

}  // namespace vt
