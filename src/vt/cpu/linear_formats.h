// How each weight format in R16 becomes vectors of columns. Included after one simd_*.h header.
//
// An integer format gives, for a block of kBlock weights and its group g of 32:
//   Codes(payload, g, s): the unsigned bytes of weights 4 s .. 4 s + 3 of the group, at most kLargest, a dword for each
//     column;
//   Prepare(head, half), then Scales(prepared, g, d, m): for each kGroup weights, w = d * (code - kCenter) + m; m is
//     used with kMin only.
// `payload` points at the vector's columns already; `half` is the vector's place in a group of 16 rows (0 on AVX-512).
// d and m are exact: products of a half and an integer of few bits. kShifts > 1: so many groups share lines, and each
// puts its codes together with shifts of its own.
#pragma once
#include "vt/cpu/r16.h"

namespace {

using Bytes = const unsigned char*;
constexpr int kHalves = vt::kR16Rows / kLanes;

VT_INLINE VF HalvesAt(Bytes head, int offset, int half) { return LoadHalves(head + offset + half * kLanes * 2); }
VT_INLINE VI DwordsAt(Bytes head, int field, int half) { return LoadI(head + field * 64 + half * kLanes * 4); }
VT_INLINE VI Line(Bytes payload, int64_t line) { return LoadI(payload + line * 64); }

// Formats whose scales need no work for a whole block.
struct Unprepared {
  static constexpr int kShifts = 1;
  struct Prepared {
    Bytes head;
    int half;
  };
  VT_INLINE static Prepared Prepare(Bytes head, int half) { return {head, half}; }
};

template <int kOnes>
struct SimpleFormat : Unprepared {
  static constexpr int kBlock = 32, kGroup = 32, kHead = 2 * kOnes, kCenter = 0;
  static constexpr bool kMin = kOnes == 2;
  VT_INLINE static void Scales(const Prepared& p, int, VF (&d)[1], VF (&m)[1]) {
    d[0] = HalvesAt(p.head, 0, p.half);
    if constexpr (kMin) m[0] = HalvesAt(p.head, 32, p.half);
  }
};

struct Q8_0 : SimpleFormat<1> {
  static constexpr int kPayload = 32, kCenter = 128, kLargest = 255;
  VT_INLINE static VI Codes(Bytes payload, int64_t, int s) { return Line(payload, s); }
};

VT_INLINE VI Nibbles32(Bytes payload, int s) { return And(ShiftRight(Line(payload, s % 4), s / 4 * 4), 0x0f0f0f0fu); }

struct Q4_0 : SimpleFormat<1> {
  static constexpr int kPayload = 16, kCenter = 8, kLargest = 15;
  VT_INLINE static VI Codes(Bytes payload, int64_t, int s) { return Nibbles32(payload, s); }
};
struct Q4_1 : SimpleFormat<2> {
  static constexpr int kPayload = 16, kLargest = 15;
  VT_INLINE static VI Codes(Bytes payload, int64_t, int s) { return Nibbles32(payload, s); }
};

VT_INLINE VI FiveBits32(Bytes payload, int s) {
  return Or(Nibbles32(payload + 64, s), And(RotateRight(Line(payload, 0), s - 4), 0x10101010u));
}
struct Q5_0 : SimpleFormat<1> {
  static constexpr int kPayload = 20, kCenter = 16, kLargest = 31;
  VT_INLINE static VI Codes(Bytes payload, int64_t, int s) { return FiveBits32(payload, s); }
};
struct Q5_1 : SimpleFormat<2> {
  static constexpr int kPayload = 20, kLargest = 31;
  VT_INLINE static VI Codes(Bytes payload, int64_t, int s) { return FiveBits32(payload, s); }
};

// The 16 levels of the IQ4 formats, 128 added.
alignas(16) constexpr uint8_t kIq4Codes[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
struct IQ4_NL : SimpleFormat<1> {
  static constexpr int kPayload = 16, kCenter = 128, kLargest = 241;
  VT_INLINE static VI Codes(Bytes payload, int64_t, int s) { return Lookup(kIq4Codes, Nibbles32(payload, s)); }
};

struct IQ4_XS : Unprepared {
  static constexpr int kBlock = 256, kGroup = 32, kHead = 8, kPayload = 128, kCenter = 128, kLargest = 241;
  static constexpr bool kMin = false;
  VT_INLINE static void Scales(const Prepared& p, int g, VF (&d)[1], VF (&)[1]) {
    const VI low = And(ShiftRight(DwordsAt(p.head, 0, p.half), 4 * g), 15);
    const VI upper = And(ShiftRight(LoadHalvesI(p.head + 96 + p.half * kLanes * 2), 2 * g), 3);
    d[0] = Mul(HalvesAt(p.head, 64, p.half), ToFloat(Add32(Or(low, ShiftLeft(upper, 4)), SplatI(-32))));
  }
  VT_INLINE static VI Codes(Bytes payload, int64_t g, int s) {
    return Lookup(kIq4Codes, Nibbles32(payload + g * 256, s));
  }
};

// Scale and minimum of 6 bits for each 32 weights: Q4_K and Q5_K. Prepared as bytes, four groups to a dword.
struct KScaleFormat {
  static constexpr int kBlock = 256, kGroup = 32, kHead = 16, kCenter = 0, kShifts = 1;
  static constexpr bool kMin = true;
  struct Prepared {
    VI scale[2], min[2];
    VF d, m;
  };
  VT_INLINE static Prepared Prepare(Bytes head, int half) {
    const VI a = DwordsAt(head, 0, half), b = DwordsAt(head, 1, half), c = DwordsAt(head, 2, half);
    Prepared p;
    p.scale[0] = And(a, 0x3f3f3f3fu);
    p.min[0] = And(b, 0x3f3f3f3fu);
    p.scale[1] = Or(And(c, 0x0f0f0f0fu), And(ShiftRight(a, 2), 0x30303030u));
    p.min[1] = Or(And(ShiftRight(c, 4), 0x0f0f0f0fu), And(ShiftRight(b, 2), 0x30303030u));
    p.d = HalvesAt(head, 192, half);
    p.m = Negate(HalvesAt(head, 224, half));
    return p;
  }
  VT_INLINE static void Scales(const Prepared& p, int g, VF (&d)[1], VF (&m)[1]) {
    d[0] = Mul(p.d, ToFloat(ByteOf(p.scale[g / 4], g % 4)));
    m[0] = Mul(p.m, ToFloat(ByteOf(p.min[g / 4], g % 4)));
  }
};
struct Q4_K : KScaleFormat {
  // Codes of odd groups stay in the upper nibble, sixteen times too large, where sums of them are exact; their scales
  // make up for it, exactly.
  static constexpr bool kShift = kNarrowSums;
  static constexpr int kPayload = 128, kLargest = kShift ? 15 : 240;
  VT_INLINE static void Scales(const Prepared& p, int g, VF (&d)[1], VF (&m)[1]) {
    KScaleFormat::Scales(p, g, d, m);
    if (!kShift) d[0] = Mul(d[0], Splat(g % 2 == 0 ? 1.0f : 1.0f / 16));
  }
  VT_INLINE static VI Codes(Bytes payload, int64_t g, int s) {
    const VI line = Line(payload, g / 2 * 8 + s);
    return kShift ? And(g % 2 == 0 ? line : ShiftRight(line, 4), 0x0f0f0f0fu) : And(line, 0x0f0f0f0fu << g % 2 * 4);
  }
};
struct Q5_K : KScaleFormat {
  static constexpr int kPayload = 160, kLargest = 31;
  VT_INLINE static VI Codes(Bytes payload, int64_t g, int s) {
    const VI low = And(ShiftRight(Line(payload, 8 + g / 2 * 8 + s), g % 2 * 4), 0x0f0f0f0fu);
    return Or(low, And(RotateRight(Line(payload, s), g - 4), 0x10101010u));
  }
};

struct Q6_K : Unprepared {
  static constexpr int kBlock = 256, kGroup = 16, kHead = 18, kPayload = 192, kCenter = 32, kLargest = 63, kShifts = 4;
  static constexpr bool kMin = false;
  VT_INLINE static void Scales(const Prepared& p, int g, VF (&d)[2], VF (&)[2]) {
    const VF all = HalvesAt(p.head, 256, p.half);
    const VI scales = DwordsAt(p.head, g / 2, p.half);
    for (int i = 0; i < 2; ++i) {
      d[i] = Mul(all, ToFloat(ShiftRightSigned(ShiftLeft(scales, 24 - (g % 2 * 2 + i) * 8), 24)));
    }
  }
  VT_INLINE static VI Codes(Bytes payload, int64_t g, int s) {
    const int64_t part = g % 4;
    const VI low = And(ShiftRight(Line(payload, g / 4 * 16 + part % 2 * 8 + s), part / 2 * 4), 0x0f0f0f0fu);
    return Or(low, And(RotateRight(Line(payload, 32 + g / 4 * 8 + s), 2 * part - 4), 0x30303030u));
  }
};

struct Q3_K : Unprepared {
  static constexpr int kBlock = 256, kGroup = 16, kHead = 14, kPayload = 96, kCenter = 4, kLargest = 7, kShifts = 4;
  static constexpr bool kMin = false;
  VT_INLINE static void Scales(const Prepared& p, int g, VF (&d)[2], VF (&)[2]) {
    const VF all = HalvesAt(p.head, 192, p.half);
    const VI upper = DwordsAt(p.head, 2, p.half);
    for (int i = 0; i < 2; ++i) {
      const int group = 2 * g + i, byte = 8 * (group % 4);
      const VI low = And(ShiftRight(DwordsAt(p.head, group % 8 / 4, p.half), byte + group / 8 * 4), 15);
      const VI high = And(ShiftRight(upper, byte + group / 4 * 2), 3);
      d[i] = Mul(all, ToFloat(Add32(Or(low, ShiftLeft(high, 4)), SplatI(-32))));
    }
  }
  VT_INLINE static VI Codes(Bytes payload, int64_t g, int s) {
    const VI low = And(ShiftRight(Line(payload, 8 + g / 4 * 8 + s), 2 * (g % 4)), 0x03030303u);
    return Or(low, And(RotateRight(Line(payload, s), g - 2), 0x04040404u));
  }
};

struct Q2_K : Unprepared {
  static constexpr int kBlock = 256, kGroup = 16, kHead = 20, kPayload = 64, kCenter = 0, kLargest = 3;
  static constexpr bool kMin = true;
  VT_INLINE static void Scales(const Prepared& p, int g, VF (&d)[2], VF (&m)[2]) {
    const VF scale = HalvesAt(p.head, 256, p.half), min = Negate(HalvesAt(p.head, 288, p.half));
    const VI pairs = ShiftRight(DwordsAt(p.head, g / 2, p.half), g % 2 * 16);
    for (int i = 0; i < 2; ++i) {
      d[i] = Mul(scale, ToFloat(And(ShiftRight(pairs, 8 * i), 15)));
      m[i] = Mul(min, ToFloat(And(ShiftRight(pairs, 8 * i + 4), 15)));
    }
  }
  VT_INLINE static VI Codes(Bytes payload, int64_t g, int s) {
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
