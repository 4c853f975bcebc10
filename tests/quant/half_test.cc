// Half and bfloat16 conversions, exhaustively over their 65536 patterns and every rounding boundary between them.
#include "quant/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace vt {
namespace {

// The value of a pattern by the definition of the format.
double HalfValue(uint16_t half) {
  const double sign = half & 0x8000 ? -1 : 1;
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  if (exponent == 31) return mantissa ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryPatternReadsAsItsValue) {
  for (int i = 0; i < 65536; ++i) {
    const auto half = static_cast<uint16_t>(i);
    const double expected = HalfValue(half);
    const float actual = FloatFromHalf(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(actual)) << i;
    } else {
      ASSERT_EQ(static_cast<double>(actual), expected) << i;
      ASSERT_EQ(std::signbit(actual), (i & 0x8000) != 0) << i;
    }
  }
}

TEST(Half, EveryFiniteValueAndInfinityReturnsToItsPattern) {
  for (int i = 0; i < 65536; ++i) {
    const auto half = static_cast<uint16_t>(i);
    const float value = FloatFromHalf(half);
    if (!std::isnan(value)) {
      ASSERT_EQ(HalfFromFloat(value), half) << i;
    } else {
      ASSERT_TRUE(std::isnan(FloatFromHalf(HalfFromFloat(value)))) << i;
    }
  }
}

TEST(Half, ValuesBetweenTwoHalvesRoundToTheNearestAndTiesToEven) {
  for (int i = 0; i < 0x7c00; ++i) {
    const auto lower = static_cast<uint16_t>(i), upper = static_cast<uint16_t>(i + 1);
    const double above = upper == 0x7c00 ? 65536.0 : HalfValue(upper);
    const auto middle = static_cast<float>((HalfValue(lower) + above) / 2);
    const uint16_t even = i % 2 == 0 ? lower : upper;
    ASSERT_EQ(HalfFromFloat(middle), even) << i;
    ASSERT_EQ(HalfFromFloat(std::nextafter(middle, 0.0f)), lower) << i;
    ASSERT_EQ(HalfFromFloat(std::nextafter(middle, HUGE_VALF)), upper) << i;
    ASSERT_EQ(HalfFromFloat(-middle), even | 0x8000) << i;
  }
}

TEST(Half, LargeFloatsBecomeInfinityAndTinyOnesSignedZero) {
  EXPECT_EQ(HalfFromFloat(1e30f), 0x7c00);
  EXPECT_EQ(HalfFromFloat(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(HalfFromFloat(-1e-30f), 0x8000);
  EXPECT_EQ(HalfFromFloat(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(Bf16, EveryPatternReturnsToItself) {
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = FloatFromBf16(bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(FloatFromBf16(Bf16FromFloat(value)))) << i;
    } else {
      ASSERT_EQ(Bf16FromFloat(value), bits) << i;
    }
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  for (int i = 0; i < 0x7f80; ++i) {
    const auto lower = static_cast<uint16_t>(i), upper = static_cast<uint16_t>(i + 1);
    const float middle = std::bit_cast<float>(static_cast<uint32_t>(i) << 16 | 0x8000u);
    ASSERT_EQ(Bf16FromFloat(middle), i % 2 == 0 ? lower : upper) << i;
    ASSERT_EQ(Bf16FromFloat(std::nextafter(middle, 0.0f)), lower) << i;
    ASSERT_EQ(Bf16FromFloat(std::nextafter(middle, HUGE_VALF)), upper) << i;
  }
}

TEST(Bf16, ANanWithLowBitsOnlyStaysANan) {
  EXPECT_TRUE(std::isnan(FloatFromBf16(Bf16FromFloat(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(FloatFromHalf(HalfFromFloat(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace vt
