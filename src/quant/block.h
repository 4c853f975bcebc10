// Unaligned little-endian reads and writes of packed fields, and the loop over blocks that all formats share.
#pragma once
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/half.h"

namespace vt {

static_assert(std::endian::native == std::endian::little, "packed fields are read as they lie in the file");

inline uint8_t LoadU8(const std::byte* p) { return std::to_integer<uint8_t>(*p); }
inline int8_t LoadI8(const std::byte* p) { return std::bit_cast<int8_t>(*p); }
template <class T>
T Load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <class T>
void Store(std::byte* p, T value) {
  std::memcpy(p, &value, sizeof value);
}
inline float LoadHalf(const std::byte* p) { return FloatFromHalf(Load<uint16_t>(p)); }
// Stores the scale as half and returns what a reader will see.
inline float StoreHalf(std::byte* p, float value) {
  const uint16_t half = HalfFromFloat(value);
  Store(p, half);
  return FloatFromHalf(half);
}
// The value that turns a division by `scale` into a product; 0 for an all-zero block.
inline float Inverse(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }
inline int Clamp(int value, int lo, int hi) { return value < lo ? lo : value > hi ? hi : value; }
// Nearest integer, halves away from zero, clamped; NaN becomes lo. Safe for every float.
inline int RoundClamped(float value, int lo, int hi) {
  if (!(value > static_cast<float>(lo))) return lo;
  if (value >= static_cast<float>(hi)) return hi;
  return static_cast<int>(std::roundf(value));
}
// value + 0.5 cut towards zero and clamped to 0..hi, as the 4- and 5-bit references round; NaN becomes 0.
inline int TruncateClamped(float value, int hi) {
  if (!(value > 0.0f)) return 0;
  return value >= static_cast<float>(hi) ? hi : static_cast<int>(value);
}

// Calls convert(block, out) for each block of kElements weights in kBytes bytes.
template <int kElements, int kBytes, class Convert>
void ForEachBlock(const std::byte* blocks, int64_t count, float* out, Convert convert) {
  for (int64_t i = 0; i < count / kElements; ++i) convert(blocks + i * kBytes, out + i * kElements);
}
template <int kElements, int kBytes, class Convert>
void ForEachBlock(const float* in, int64_t count, std::byte* blocks, Convert convert) {
  for (int64_t i = 0; i < count / kElements; ++i) convert(in + i * kElements, blocks + i * kBytes);
}

// Weights of a super-block of the K and IQ families.
inline constexpr int kSuper = 256;

}  // namespace vt
