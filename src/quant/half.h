// Half and bfloat16 from and to float: exact, round to nearest even, branch-light; for kernels and for reference code.
#pragma once
#include <bit>
#include <cstdint>

namespace vt {

// Exact for all 65536 patterns; a NaN keeps its payload (and becomes quiet as the hardware does it).
inline float FloatFromHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity and NaN
    const uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13) | quiet);
  }
  if (magnitude < 0x0400u) {  // zero and subnormals: magnitude × 2^-24, exact in float
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + ((127u - 15u) << 23)));
}

// Round to nearest even; beyond 65504 + half a step infinity; a NaN stays a (quiet) NaN.
inline uint16_t HalfFromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) {
    const uint32_t payload = magnitude > 0x7f800000u ? 0x0200u | ((magnitude >> 13) & 0x3ffu) : 0u;
    return static_cast<uint16_t>(sign | 0x7c00u | payload);
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {
    // Below the smallest normal 2^-14: adding 0.5 puts the half's last place at the float's last place.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - ((127u - 15u) << 23)) >> 13));
}

inline float FloatFromBf16(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

// Round to nearest even; a NaN stays a (quiet) NaN.
inline uint16_t Bf16FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace vt
