// How each weight format becomes vectors of f32, exactly as quant/ defines it. Included after one simd_*.h header.
//
// A format F has kBlock weights in kBytes bytes, unpacked in units of kUnit weights: State s(block) holds what the
// units share, s.Unit(u, out) gives the weights [u * kUnit, (u + 1) * kUnit) in order. d * scale * q has at most 24
// significant bits in every format here, so only the last addition rounds, whatever the order, and the values equal the
// reference bit for bit.
#pragma once

namespace {

constexpr int kPer16 = 16 / kWidth;

template <VF (*kLoad)(const void*), int kSize>
struct FloatFormat {
  static constexpr int kBlock = 32, kBytes = 32 * kSize, kUnit = 32;
  const unsigned char* block;
  VT_INLINE explicit FloatFormat(const unsigned char* b) : block(b) {}
  VT_INLINE void Unit(int, VF (&out)[2 * kPer16]) const {
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kPer16; ++i) out[i] = kLoad(block + i * kWidth * kSize);
  }
};
using F32 = FloatFormat<LoadF32, 4>;
using F16 = FloatFormat<LoadF16, 2>;
using BF16 = FloatFormat<LoadBF16, 2>;

struct Q8_0 {  // d, 32 x int8
  static constexpr int kBlock = 32, kBytes = 34, kUnit = 32;
  const unsigned char* block;
  VT_INLINE explicit Q8_0(const unsigned char* b) : block(b) {}
  VT_INLINE void Unit(int, VF (&out)[2 * kPer16]) const {
    const VF d = SplatF16(block);
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kPer16; ++i) out[i] = Mul(LoadS8(block + 2 + i * kWidth), d);
  }
};

VT_INLINE void Nibbles32(const unsigned char* q, NibbleTable table, VF (&out)[2 * kPer16]) {
  const Bytes16 bytes = LoadBytes16(q);
  VF low[kPer16], high[kPer16];
  LowNibbles(bytes, table, low);
  HighNibbles(bytes, table, high);
#pragma GCC unroll 2
  for (int i = 0; i < kPer16; ++i) out[i] = low[i], out[kPer16 + i] = high[i];
}

struct Q4_0 {  // d, 16 bytes: d * (q - 8)
  static constexpr int kBlock = 32, kBytes = 18, kUnit = 32;
  const unsigned char* block;
  VT_INLINE explicit Q4_0(const unsigned char* b) : block(b) {}
  VT_INLINE void Unit(int, VF (&out)[2 * kPer16]) const {
    const VF d = SplatF16(block);
    Nibbles32(block + 2, MakeTable(d, Mul(d, Splat(-8))), out);
  }
};

struct Q4_1 {  // d, m, 16 bytes: d * q + m
  static constexpr int kBlock = 32, kBytes = 20, kUnit = 32;
  const unsigned char* block;
  VT_INLINE explicit Q4_1(const unsigned char* b) : block(b) {}
  VT_INLINE void Unit(int, VF (&out)[2 * kPer16]) const {
    Nibbles32(block + 4, MakeTable(SplatF16(block), SplatF16(block + 2)), out);
  }
};

struct Q5_0 {  // d, 32 fifth bits, 16 bytes: d * (q - 16)
  static constexpr int kBlock = 32, kBytes = 22, kUnit = 32;
  const unsigned char* block;
  VT_INLINE explicit Q5_0(const unsigned char* b) : block(b) {}
  VT_INLINE void Unit(int, VF (&out)[2 * kPer16]) const {
    const VF d = SplatF16(block), step = Mul(d, Splat(16));
    const NibbleTable table = MakeTable(d, Mul(d, Splat(-16)));
    const Bytes16 bytes = LoadBytes16(block + 6);
    uint32_t fifth;
    std::memcpy(&fifth, block + 2, 4);
    VF low[kPer16], high[kPer16];
    LowNibbles(bytes, table, low);
    HighNibbles(bytes, table, high);
    AddWhere(fifth & 0xffff, step, low);
    AddWhere(fifth >> 16, step, high);
#pragma GCC unroll 2
    for (int i = 0; i < kPer16; ++i) out[i] = low[i], out[kPer16 + i] = high[i];
  }
};

struct Q4_K {  // d, dmin, 8 x 6-bit scale and min, 4 x 32 bytes: d * scale * q - dmin * min
  static constexpr int kBlock = 256, kBytes = 144, kUnit = 64;
  const unsigned char* block;
  alignas(32) float scale[8], minus_min[8];
  VT_INLINE explicit Q4_K(const unsigned char* b) : block(b) {
    uint32_t w[3];
    std::memcpy(w, b + 4, 12);
    const uint64_t scales =
        (w[0] & 0x3f3f3f3fu) | static_cast<uint64_t>((w[2] & 0x0f0f0f0fu) | (w[0] >> 2 & 0x30303030u)) << 32;
    const uint64_t mins =
        (w[1] & 0x3f3f3f3fu) | static_cast<uint64_t>((w[2] >> 4 & 0x0f0f0f0fu) | (w[1] >> 2 & 0x30303030u)) << 32;
    int16_t d, dmin;
    std::memcpy(&d, b, 2);
    std::memcpy(&dmin, b + 2, 2);
    const __m256 d8 = _mm256_cvtph_ps(_mm_set1_epi16(d)), dmin8 = _mm256_cvtph_ps(_mm_set1_epi16(dmin));
    const auto to_float = [](uint64_t bytes) __attribute__((always_inline)) {
      return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bytes))));
    };
    _mm256_store_ps(scale, _mm256_mul_ps(to_float(scales), d8));
    _mm256_store_ps(minus_min, _mm256_xor_ps(_mm256_mul_ps(to_float(mins), dmin8), _mm256_set1_ps(-0.0f)));
  }
  VT_INLINE void Unit(int u, VF (&out)[4 * kPer16]) const {
    const NibbleTable first = MakeTable(Splat(scale[2 * u]), Splat(minus_min[2 * u]));
    const NibbleTable second = MakeTable(Splat(scale[2 * u + 1]), Splat(minus_min[2 * u + 1]));
#pragma GCC unroll 2
    for (int part = 0; part < 2; ++part) {
      const Bytes16 bytes = LoadBytes16(block + 16 + 32 * u + 16 * part);
      VF low[kPer16], high[kPer16];
      LowNibbles(bytes, first, low);
      HighNibbles(bytes, second, high);
#pragma GCC unroll 2
      for (int i = 0; i < kPer16; ++i) {
        out[part * kPer16 + i] = low[i];
        out[(2 + part) * kPer16 + i] = high[i];
      }
    }
  }
};

struct Q6_K {  // 128 bytes low, 64 bytes high, 16 x int8 scale, d: d * scale * (q - 32)
  static constexpr int kBlock = 256, kBytes = 210, kUnit = 32;
  const unsigned char* block;
  alignas(64) float scale[16];
  VT_INLINE explicit Q6_K(const unsigned char* b) : block(b) {
    const VF d = SplatF16(b + 208);
#pragma GCC unroll 2
    for (int i = 0; i < kPer16; ++i) StoreF32(scale + i * kWidth, Mul(LoadS8(b + 192 + i * kWidth), d));
  }
  VT_INLINE void Unit(int u, VF (&out)[2 * kPer16]) const {
    const int half = u / 4, quarter = u % 4;
    const auto load = [](const unsigned char* p) __attribute__((always_inline)) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    };
    const __m256i low_bytes = load(block + 64 * half + 32 * (quarter % 2));
    const __m256i high_bytes = load(block + 128 + 32 * half);
    const __m256i low =
        _mm256_and_si256(_mm256_srl_epi16(low_bytes, _mm_cvtsi32_si128(4 * (quarter / 2))), _mm256_set1_epi8(15));
    const __m256i high =
        _mm256_and_si256(_mm256_srl_epi16(high_bytes, _mm_cvtsi32_si128(2 * quarter)), _mm256_set1_epi8(3));
    const __m256i q = _mm256_sub_epi8(_mm256_or_si256(low, _mm256_slli_epi16(high, 4)), _mm256_set1_epi8(32));
    VF first[kPer16], second[kPer16];
    FromS8(_mm256_castsi256_si128(q), first);
    FromS8(_mm256_extracti128_si256(q, 1), second);
    const VF first_scale = Splat(scale[2 * u]), second_scale = Splat(scale[2 * u + 1]);
#pragma GCC unroll 2
    for (int i = 0; i < kPer16; ++i) {
      out[i] = Mul(first[i], first_scale);
      out[kPer16 + i] = Mul(second[i], second_scale);
    }
  }
};

}  // namespace
