// How each weight format becomes vectors of f32, exactly as quant/ defines it. Included after one simd_*.h header.
//
// A format has kBlock weights in kBytes bytes. Prepare(block, blocks, scales) writes the kScales factors of each block
// as f32, ahead of the weights, so that they are broadcast from memory and take no shuffles; Unit(block, scales, u,
// out) gives the weights [u * kUnit, (u + 1) * kUnit) in order. d * scale * q has at most 24 significant bits in every
// format here, so only the last addition rounds, whatever the order, and the values equal the reference bit for bit.
#pragma once

namespace {

constexpr int kPer16 = 16 / kWidth;

template <VF (*kLoad)(const void*), int kSize>
struct FloatFormat {
  static constexpr int kBlock = 32, kBytes = 32 * kSize, kUnit = 32, kScales = 0;
  VT_INLINE static void Prepare(const unsigned char*, int, float*) {}
  VT_INLINE static void Unit(const unsigned char* block, const float*, int, VF (&out)[2 * kPer16]) {
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kPer16; ++i) out[i] = kLoad(block + i * kWidth * kSize);
  }
};
using F32 = FloatFormat<LoadF32, 4>;
using F16 = FloatFormat<LoadF16, 2>;
using BF16 = FloatFormat<LoadBF16, 2>;

// The F16 number or numbers at the start of every block as f32: eight converted at once, as one conversion costs as
// much as four products.
template <int kBytes>
VT_INLINE void PrepareHalves(const unsigned char* block, int blocks, float* scales) {
  const auto half = [block](int b) __attribute__((always_inline)) {
    int16_t bits;
    std::memcpy(&bits, block + b * kBytes, 2);
    return bits;
  };
  int b = 0;
  for (; b + 8 <= blocks; b += 8) {
    const __m128i eight = _mm_set_epi16(half(b + 7), half(b + 6), half(b + 5), half(b + 4), half(b + 3), half(b + 2),
                                        half(b + 1), half(b));
    _mm256_storeu_ps(scales + b, _mm256_cvtph_ps(eight));
  }
  for (; b < blocks; ++b) scales[b] = _cvtsh_ss(static_cast<uint16_t>(half(b)));
}
template <int kBytes>
VT_INLINE void PreparePairs(const unsigned char* block, int blocks, float* scales) {
  const auto pair = [block](int b) __attribute__((always_inline)) {
    int32_t bits;
    std::memcpy(&bits, block + b * kBytes, 4);
    return bits;
  };
  int b = 0;
  for (; b + 4 <= blocks; b += 4) {
    const __m128i eight = _mm_set_epi32(pair(b + 3), pair(b + 2), pair(b + 1), pair(b));
    _mm256_storeu_ps(scales + 2 * b, _mm256_cvtph_ps(eight));
  }
  for (; b < blocks; ++b) {
    _mm_storel_pi(reinterpret_cast<__m64*>(scales + 2 * b), _mm_cvtph_ps(_mm_cvtsi32_si128(pair(b))));
  }
}
// Formats with more factors prepare block by block.
template <class Format>
VT_INLINE void PrepareEach(const unsigned char* block, int blocks, float* scales) {
  for (int b = 0; b < blocks; ++b) Format::PrepareOne(block + b * Format::kBytes, scales + b * Format::kScales);
}

struct Q8_0 {  // d, 32 x int8
  static constexpr int kBlock = 32, kBytes = 34, kUnit = 32, kScales = 1;
  VT_INLINE static void Prepare(const unsigned char* block, int blocks, float* scales) {
    PrepareHalves<kBytes>(block, blocks, scales);
  }
  VT_INLINE static void Unit(const unsigned char* block, const float* scales, int, VF (&out)[2 * kPer16]) {
    const VF d = Splat(scales[0]);
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
  static constexpr int kBlock = 32, kBytes = 18, kUnit = 32, kScales = 1;
  VT_INLINE static void Prepare(const unsigned char* block, int blocks, float* scales) {
    PrepareHalves<kBytes>(block, blocks, scales);
  }
  VT_INLINE static void Unit(const unsigned char* block, const float* scales, int, VF (&out)[2 * kPer16]) {
    Nibbles32(block + 2, MakeCenteredTable<8>(Splat(scales[0])), out);
  }
};

struct Q4_1 {  // d, m, 16 bytes: d * q + m
  static constexpr int kBlock = 32, kBytes = 20, kUnit = 32, kScales = 2;
  VT_INLINE static void Prepare(const unsigned char* block, int blocks, float* scales) {
    PreparePairs<kBytes>(block, blocks, scales);
  }
  VT_INLINE static void Unit(const unsigned char* block, const float* scales, int, VF (&out)[2 * kPer16]) {
    Nibbles32(block + 4, MakeTable(Splat(scales[0]), Splat(scales[1])), out);
  }
};

struct Q5_0 {  // d, 32 fifth bits, 16 bytes: d * (q - 16)
  static constexpr int kBlock = 32, kBytes = 22, kUnit = 32, kScales = 1;
  VT_INLINE static void Prepare(const unsigned char* block, int blocks, float* scales) {
    PrepareHalves<kBytes>(block, blocks, scales);
  }
  VT_INLINE static void Unit(const unsigned char* block, const float* scales, int, VF (&out)[2 * kPer16]) {
    const VF d = Splat(scales[0]), step = Mul(d, Splat(16));
    uint32_t fifth;
    std::memcpy(&fifth, block + 2, 4);
    Nibbles32(block + 6, MakeCenteredTable<16>(d), out);
    AddWhere(fifth, step, out);
  }
};

struct Q4_K {  // d, dmin, 8 x 6-bit scale and min, 4 x 32 bytes: d * scale * q - dmin * min
  static constexpr int kBlock = 256, kBytes = 144, kUnit = 64, kScales = 16;
  VT_INLINE static void Prepare(const unsigned char* block, int blocks, float* scales) {
    PrepareEach<Q4_K>(block, blocks, scales);
  }
  VT_INLINE static void PrepareOne(const unsigned char* b, float* out) {
    uint32_t w[3];
    std::memcpy(w, b + 4, 12);
    const uint32_t scale_high = (w[2] & 0x0f0f0f0fu) | (w[0] >> 2 & 0x30303030u);
    const uint32_t min_high = (w[2] >> 4 & 0x0f0f0f0fu) | (w[1] >> 2 & 0x30303030u);
    const uint64_t scales = (w[0] & 0x3f3f3f3fu) | static_cast<uint64_t>(scale_high) << 32;
    const uint64_t mins = (w[1] & 0x3f3f3f3fu) | static_cast<uint64_t>(min_high) << 32;
    int16_t d, dmin;
    std::memcpy(&d, b, 2);
    std::memcpy(&dmin, b + 2, 2);
    const __m256 d8 = _mm256_cvtph_ps(_mm_set1_epi16(d));
    // Negated here, so that a unit adds: the sign of a product is exact.
    const __m256 dmin8 = _mm256_xor_ps(_mm256_cvtph_ps(_mm_set1_epi16(dmin)), _mm256_set1_ps(-0.0f));
    const auto to_float = [](uint64_t bytes) __attribute__((always_inline)) {
      return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bytes))));
    };
    _mm256_storeu_ps(out, _mm256_mul_ps(to_float(scales), d8));
    _mm256_storeu_ps(out + 8, _mm256_mul_ps(to_float(mins), dmin8));
  }
  VT_INLINE static void Unit(const unsigned char* block, const float* scales, int u, VF (&out)[4 * kPer16]) {
    const NibbleTable first = MakeTable(Splat(scales[2 * u]), Splat(scales[8 + 2 * u]));
    const NibbleTable second = MakeTable(Splat(scales[2 * u + 1]), Splat(scales[8 + 2 * u + 1]));
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
  static constexpr int kBlock = 256, kBytes = 210, kUnit = 64, kScales = 16;
  VT_INLINE static void Prepare(const unsigned char* block, int blocks, float* scales) {
    PrepareEach<Q6_K>(block, blocks, scales);
  }
  VT_INLINE static void PrepareOne(const unsigned char* b, float* out) {
    const VF d = SplatF16(b + 208);
#pragma GCC unroll 2
    for (int i = 0; i < kPer16; ++i) StoreF32(out + i * kWidth, Mul(LoadS8(b + 192 + i * kWidth), d));
  }
  VT_INLINE static void Unit(const unsigned char* block, const float* scales, int u, VF (&out)[4 * kPer16]) {
    const int half = u / 2, nibble = u % 2;
    const __m128i shift = _mm_cvtsi32_si128(4 * nibble);
    const __m256i high = _mm256_srl_epi16(Load32(block + 128 + 32 * half), shift);
#pragma GCC unroll 2
    for (int part = 0; part < 2; ++part) {
      const __m256i low = _mm256_srl_epi16(Load32(block + 64 * half + 32 * part), shift);
      const __m256i upper = part == 0 ? _mm256_slli_epi16(high, 4) : _mm256_slli_epi16(high, 2);
      const __m256i q = _mm256_sub_epi8(
          _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi8(15)), _mm256_and_si256(upper, _mm256_set1_epi8(48))),
          _mm256_set1_epi8(32));
      VF first[kPer16], second[kPer16];
      FromS8(_mm256_castsi256_si128(q), first);
      FromS8(_mm256_extracti128_si256(q, 1), second);
      const VF first_scale = Splat(scales[4 * u + 2 * part]), second_scale = Splat(scales[4 * u + 2 * part + 1]);
#pragma GCC unroll 2
      for (int i = 0; i < kPer16; ++i) {
        out[2 * part * kPer16 + i] = Mul(first[i], first_scale);
        out[(2 * part + 1) * kPer16 + i] = Mul(second[i], second_scale);
      }
    }
  }
  VT_INLINE static __m256i Load32(const unsigned char* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
};

// Factors of the longest sum block (LinearKernels' SumBlock) in any format.
constexpr int kMaxScales = 64;

}  // namespace
