// The two 8-bit floats E4M3 (no infinity) and E5M2 from and to float: exact, round to nearest even, saturating.
#pragma once
#include <bit>
#include <cstdint>

#include "quant/half.h"

namespace vt {

inline constexpr float kE4m3Max = 448, kE5m2Max = 57344;
inline constexpr uint8_t kE4m3Nan = 0x7f, kE5m2Nan = 0x7f;

// Exact for all 256 patterns; 0x7f and 0xff are NaN.
inline float FloatFromE4m3(uint8_t code) {
  if ((code & 0x7f) == 0x7f) return std::bit_cast<float>(0x7fc00000u);
  // The same bits as a half, whose exponent is biased by 8 more; subnormals come out right by themselves.
  return FloatFromHalf(static_cast<uint16_t>((code & 0x80) << 8 | (code & 0x7f) << 7)) * 256;
}

// Exact for all 256 patterns: an E5M2 is the upper byte of a half.
inline float FloatFromE5m2(uint8_t code) { return FloatFromHalf(static_cast<uint16_t>(code << 8)); }

// Round to nearest even; everything beyond 448, infinity too, becomes 448 with its sign; a NaN becomes 0x7f.
inline uint8_t E4m3FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 24) & 0x80, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return kE4m3Nan;
  if (magnitude >= 0x43e00000u) return static_cast<uint8_t>(sign | 0x7e);  // 448
  // Below the smallest normal 2^-6: adding 2^14 puts the last place 2^-9 at the float's last place.
  if (magnitude < 0x3c800000u)
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14f) & 0xff));
  return static_cast<uint8_t>(sign | ((magnitude + 0x7ffffu + ((magnitude >> 20) & 1) - (120u << 23)) >> 20));
}

// Round to nearest even; everything beyond 57344, infinity too, becomes 57344 with its sign; a NaN becomes 0x7f.
inline uint8_t E5m2FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 24) & 0x80, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return kE5m2Nan;
  if (magnitude >= 0x47600000u) return static_cast<uint8_t>(sign | 0x7b);  // 57344
  // Below 2^-14: adding 2^7 puts the last place 2^-16 at the float's last place.
  if (magnitude < 0x38800000u)
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0x1p7f) & 0xff));
  return static_cast<uint8_t>(sign | ((magnitude + 0xfffffu + ((magnitude >> 21) & 1) - (112u << 23)) >> 21));
}

}  // namespace vt
