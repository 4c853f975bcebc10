// How each weight format in R16 becomes vectors of columns. Included after one simd_*.h header.
//
// An integer format gives, for a block of kBlock weights and its group g of 32:
//   Codes(payload, g, s): the unsigned bytes of weights 4 s .. 4 s + 3 of the group, a dword for each column;
//   Scales(head, half, g, d, m): for each kGroup weights, w = d * (code - kCenter) + m; m is used with kMin only.
// `payload` points at the vector's columns already; `half` is the vector's place in a group of 16 rows (0 on AVX-512).
// d and m are exact: products of a half and an integer of few bits.
#pragma once
#include "vt/cpu/r16.h"

namespace {

using Bytes = const unsigned char*;
constexpr int kHalves = vt::kR16Rows / kLanes;

VT_INLINE VF HalvesAt(Bytes head, int offset, int half) { return LoadHalves(head + offset + half * kLanes * 2); }
VT_INLINE VI DwordsAt(Bytes head, int field, int half) { return LoadI(head + field * 64 + half * kLanes * 4); }
VT_INLINE VI Line(Bytes payload, int line) { return LoadI(payload + line * 64); }

template <int kOnes>
struct SimpleFormat {
  static constexpr int kBlock = 32, kGroup = 32, kHead = 2 * kOnes, kCenter = 0;
  static constexpr bool kMin = kOnes == 2;
  VT_INLINE static void Scales(Bytes head, int half, int, VF (&d)[1], VF (&m)[1]) {
    d[0] = HalvesAt(head, 0, half);
    if constexpr (kMin) m[0] = HalvesAt(head, 32, half);
  }
};

struct Q8_0 : SimpleFormat<1> {
  static constexpr int kPayload = 32, kCenter = 128;
  VT_INLINE static VI Codes(Bytes payload, int, int s) { return Line(payload, s); }
};

VT_INLINE VI Nibbles32(Bytes payload, int s) { return And(ShiftRight(Line(payload, s % 4), s / 4 * 4), 0x0f0f0f0fu); }

struct Q4_0 : SimpleFormat<1> {
  static constexpr int kPayload = 16, kCenter = 8;
  VT_INLINE static VI Codes(Bytes payload, int, int s) { return Nibbles32(payload, s); }
};
struct Q4_1 : SimpleFormat<2> {
  static constexpr int kPayload = 16;
  VT_INLINE static VI Codes(Bytes payload, int, int s) { return Nibbles32(payload, s); }
};

VT_INLINE VI FiveBits32(Bytes payload, int s) {
  const VI fifth = And(ShiftRight(Line(payload, 0), s), 0x01010101u);
  return Or(Nibbles32(payload + 64, s), ShiftLeft(fifth, 4));
}
struct Q5_0 : SimpleFormat<1> {
  static constexpr int kPayload = 20, kCenter = 16;
  VT_INLINE static VI Codes(Bytes payload, int, int s) { return FiveBits32(payload, s); }
};
struct Q5_1 : SimpleFormat<2> {
  static constexpr int kPayload = 20;
  VT_INLINE static VI Codes(Bytes payload, int, int s) { return FiveBits32(payload, s); }
};

// The 16 levels of the IQ4 formats, 128 added.
alignas(16) constexpr uint8_t kIq4Codes[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
struct IQ4_NL : SimpleFormat<1> {
  static constexpr int kPayload = 16, kCenter = 128;
  VT_INLINE static VI Codes(Bytes payload, int, int s) { return Lookup(kIq4Codes, Nibbles32(payload, s)); }
};

struct IQ4_XS {
  static constexpr int kBlock = 256, kGroup = 32, kHead = 8, kPayload = 128, kCenter = 128;
  static constexpr bool kMin = false;
  VT_INLINE static void Scales(Bytes head, int half, int g, VF (&d)[1], VF (&)[1]) {
    const VI low = And(ShiftRight(DwordsAt(head, 0, half), 4 * g), 15);
    const VI upper = And(ShiftRight(LoadHalvesI(head + 96 + half * kLanes * 2), 2 * g), 3);
    d[0] = Mul(HalvesAt(head, 64, half), ToFloat(Add32(Or(low, ShiftLeft(upper, 4)), SplatI(-32))));
  }
  VT_INLINE static VI Codes(Bytes payload, int g, int s) { return Lookup(kIq4Codes, Nibbles32(payload + g * 256, s)); }
};

// Scale and minimum of 6 bits for each 32 weights: Q4_K and Q5_K.
struct KScaleFormat {
  static constexpr int kBlock = 256, kGroup = 32, kHead = 16, kCenter = 0;
  static constexpr bool kMin = true;
  VT_INLINE static void Scales(Bytes head, int half, int g, VF (&d)[1], VF (&m)[1]) {
    const VI a = DwordsAt(head, 0, half), b = DwordsAt(head, 1, half), c = DwordsAt(head, 2, half);
    const int at = g % 4 * 8;
    VI scale = ShiftRight(a, at), min = ShiftRight(b, at);
    if (g < 4) {
      scale = And(scale, 63);
      min = And(min, 63);
    } else {
      scale = Or(And(ShiftRight(c, at), 15), And(ShiftRight(scale, 2), 0x30));
      min = Or(And(ShiftRight(c, at + 4), 15), And(ShiftRight(min, 2), 0x30));
    }
    d[0] = Mul(HalvesAt(head, 192, half), ToFloat(scale));
    m[0] = Mul(Negate(HalvesAt(head, 224, half)), ToFloat(min));
  }
};
struct Q4_K : KScaleFormat {
  static constexpr int kPayload = 128;
  VT_INLINE static VI Codes(Bytes payload, int g, int s) {
    return And(ShiftRight(Line(payload, g / 2 * 8 + s), g % 2 * 4), 0x0f0f0f0fu);
  }
};
struct Q5_K : KScaleFormat {
  static constexpr int kPayload = 160;
  VT_INLINE static VI Codes(Bytes payload, int g, int s) {
    const VI low = And(ShiftRight(Line(payload, 8 + g / 2 * 8 + s), g % 2 * 4), 0x0f0f0f0fu);
    return Or(low, ShiftLeft(And(ShiftRight(Line(payload, s), g), 0x01010101u), 4));
  }
};

struct Q6_K {
  static constexpr int kBlock = 256, kGroup = 16, kHead = 18, kPayload = 192, kCenter = 32;
  static constexpr bool kMin = false;
  VT_INLINE static void Scales(Bytes head, int half, int g, VF (&d)[2], VF (&)[2]) {
    const VF all = HalvesAt(head, 256, half);
    const VI scales = ShiftRight(DwordsAt(head, g / 2, half), g % 2 * 16);
    d[0] = Mul(all, ToFloat(ShiftRightSigned(ShiftLeft(scales, 24), 24)));
    d[1] = Mul(all, ToFloat(ShiftRightSigned(ShiftLeft(scales, 16), 24)));
  }
  VT_INLINE static VI Codes(Bytes payload, int g, int s) {
    const int part = g % 4;
    const VI low = And(ShiftRight(Line(payload, g / 4 * 16 + part % 2 * 8 + s), part / 2 * 4), 0x0f0f0f0fu);
    const VI high = And(ShiftRight(Line(payload, 32 + g / 4 * 8 + s), 2 * part), 0x03030303u);
    return Or(low, ShiftLeft(high, 4));
  }
};

struct Q3_K {
  static constexpr int kBlock = 256, kGroup = 16, kHead = 14, kPayload = 96, kCenter = 4;
  static constexpr bool kMin = false;
  VT_INLINE static void Scales(Bytes head, int half, int g, VF (&d)[2], VF (&)[2]) {
    const VF all = HalvesAt(head, 192, half);
    const VI upper = DwordsAt(head, 2, half);
    for (int i = 0; i < 2; ++i) {
      const int group = 2 * g + i, byte = 8 * (group % 4);
      const VI low = And(ShiftRight(DwordsAt(head, group % 8 / 4, half), byte + group / 8 * 4), 15);
      const VI high = And(ShiftRight(upper, byte + group / 4 * 2), 3);
      d[i] = Mul(all, ToFloat(Add32(Or(low, ShiftLeft(high, 4)), SplatI(-32))));
    }
  }
  VT_INLINE static VI Codes(Bytes payload, int g, int s) {
    const VI low = And(ShiftRight(Line(payload, 8 + g / 4 * 8 + s), 2 * (g % 4)), 0x03030303u);
    return Or(low, ShiftLeft(And(ShiftRight(Line(payload, s), g), 0x01010101u), 2));
  }
};

struct Q2_K {
  static constexpr int kBlock = 256, kGroup = 16, kHead = 20, kPayload = 64, kCenter = 0;
  static constexpr bool kMin = true;
  VT_INLINE static void Scales(Bytes head, int half, int g, VF (&d)[2], VF (&m)[2]) {
    const VF scale = HalvesAt(head, 256, half), min = Negate(HalvesAt(head, 288, half));
    const VI pairs = ShiftRight(DwordsAt(head, g / 2, half), g % 2 * 16);
    for (int i = 0; i < 2; ++i) {
      d[i] = Mul(scale, ToFloat(And(ShiftRight(pairs, 8 * i), 15)));
      m[i] = Mul(min, ToFloat(And(ShiftRight(pairs, 8 * i + 4), 15)));
    }
  }
  VT_INLINE static VI Codes(Bytes payload, int g, int s) {
    return And(ShiftRight(Line(payload, g / 4 * 8 + s), 2 * (g % 4)), 0x03030303u);
  }
};

// Float formats: Values(payload, i) is weight i of a block of 32.
struct F32 {
  static constexpr int kPayload = 128;
  VT_INLINE static VF Values(Bytes payload, int half, int i) { return LoadF(payload + i * 64 + half * kLanes * 4); }
};
struct F16 {
  static constexpr int kPayload = 64;
  VT_INLINE static VF Values(Bytes payload, int half, int i) { return HalvesAt(payload, i * 32, half); }
};
struct BF16 {
  static constexpr int kPayload = 64;
  VT_INLINE static VF Values(Bytes payload, int half, int i) {
    const VI pairs = LoadI(payload + i / 2 * 64 + half * kLanes * 4);
    return BitsAsFloat(i % 2 == 0 ? ShiftLeft(pairs, 16) : And(pairs, 0xffff0000u));
  }
};

}  // namespace
