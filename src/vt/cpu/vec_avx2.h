// The vector vocabulary of the row and attention kernels on AVX2 with FMA: 8 floats.
//
// Include only from units compiled for that instruction set. Everything is in an unnamed namespace: a shared inline
// function compiled here could replace its generic copy at link time and die on lesser machines.
#pragma once
#include <immintrin.h>

#include <cstdint>

#include "vt/cpu/vec_unroll.h"

namespace vt {
namespace {

struct Vec {
  using F = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kVectors = 2;  // vectors side by side in a register block of 6 rows

  static F Zero() { return _mm256_setzero_ps(); }
  static F Set(float x) { return _mm256_set1_ps(x); }
  static F Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(float* p, F v) { _mm256_storeu_ps(p, v); }
  // The first n lanes; the others are 0 and are not touched in memory.
  static F LoadPart(const float* p, int64_t n) { return _mm256_maskload_ps(p, Mask(n)); }
  static void StorePart(float* p, F v, int64_t n) { _mm256_maskstore_ps(p, Mask(n), v); }
  static F Add(F a, F b) { return _mm256_add_ps(a, b); }
  static F Sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F Mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F Div(F a, F b) { return _mm256_div_ps(a, b); }
  static F Sqrt(F a) { return _mm256_sqrt_ps(a); }
  static F Fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }    // a * b + c
  static F Fnma(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }  // c - a * b
  // With a NaN on either side the result is b.
  static F Max(F a, F b) { return _mm256_max_ps(a, b); }
  static F Min(F a, F b) { return _mm256_min_ps(a, b); }
  static F Round(F a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  // p * 2^n, n a whole number in [-250, 250]; in two steps, so that a result below the normal numbers rounds once.
  static F Scale(F p, F n) {
    const __m256i whole = _mm256_cvtps_epi32(n);
    const __m256i first = _mm256_srai_epi32(whole, 1);
    return _mm256_mul_ps(_mm256_mul_ps(p, Power(first)), Power(_mm256_sub_epi32(whole, first)));
  }
  static F Abs(F a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
  // |magnitude| with the sign of `sign`.
  static F CopySign(F magnitude, F sign) {
    const F bit = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(bit, magnitude), _mm256_and_ps(bit, sign));
  }
  // a < b ? x : y
  static F IfLess(F a, F b, F x, F y) { return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
  static float Sum(F v) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
  }
  static float Largest(F v) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
  }
  static float First(F v) { return _mm256_cvtss_f32(v); }

  // A condition for each lane.
  using M = __m256;
  static M Unordered(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }  // either is NaN
  static M Equal(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  static M Greater(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
  static M Or(M a, M b) { return _mm256_or_ps(a, b); }
  static bool Any(M m) { return _mm256_movemask_ps(m) != 0; }
  // The lowest lane that is set; one is.
  static int FirstLane(M m) { return __builtin_ctz(static_cast<unsigned>(_mm256_movemask_ps(m))); }

  static F LoadBf16(const uint16_t* p) { return Widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  // head_dim is a multiple of 8, so parts of a bf16 vector are whole here; n is 8.
  static F LoadBf16Part(const uint16_t* p, int64_t) { return LoadBf16(p); }
  // Rounds to nearest even; a NaN stays one.
  static void StoreBf16Part(uint16_t* p, F v, int64_t n) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i rounded = _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), quiet, nan);
    const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
    if (n == kLanes) return _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
    alignas(16) uint16_t values[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(values), packed);
    for (int64_t i = 0; i < n; ++i) p[i] = values[i];
  }

  static F LoadHalf(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static F LoadHalfPart(const uint16_t* p, int64_t) { return LoadHalf(p); }  // n is 8, as above
  // Rounds to nearest even.
  static void StoreHalfPart(uint16_t* p, F v, int64_t n) {
    const __m128i packed = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (n == kLanes) return _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
    alignas(16) uint16_t values[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(values), packed);
    for (int64_t i = 0; i < n; ++i) p[i] = values[i];
  }

  // kLanes pairs of elements: the first ones of the pairs in a, the second ones in b. The part functions read n pairs,
  // and n is 8, as above.
  static void LoadBf16Pairs(const uint8_t* p, F& a, F& b) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    a = _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
    b = _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32(0xffff << 16)));
  }
  static void LoadE5m2Pairs(const uint8_t* p, F& a, F& b) {
    const __m128i words = LoadWords(p);
    a = _mm256_cvtph_ps(_mm_slli_epi16(words, 8));
    b = _mm256_cvtph_ps(_mm_and_si128(words, _mm_set1_epi16(static_cast<int16_t>(0xff00))));
  }
  static void LoadE5m2PairsPart(const uint8_t* p, int64_t, F& a, F& b) { LoadE5m2Pairs(p, a, b); }
  // Times 2^-8; NaN is not known and becomes 1.875.
  static void LoadE4m3Pairs(const uint8_t* p, F& a, F& b) {
    const __m128i words = LoadWords(p), bits = _mm_set1_epi16(static_cast<int16_t>(0xbf80));
    a = _mm256_cvtph_ps(_mm_and_si128(_mm_srai_epi16(_mm_slli_epi16(words, 8), 1), bits));
    b = _mm256_cvtph_ps(_mm_and_si128(_mm_srai_epi16(words, 1), bits));
  }
  static void LoadE4m3PairsPart(const uint8_t* p, int64_t, F& a, F& b) { LoadE4m3Pairs(p, a, b); }
  // Whether one of `bytes`, a multiple of 32, is 0x7f.
  static bool AnyByteIs7f(const uint8_t* p, int64_t bytes) {
    __m256i largest = _mm256_set1_epi8(-128);
    for (int64_t i = 0; i < bytes; i += 32)
      largest = _mm256_max_epi8(largest, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + i)));
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(largest, _mm256_set1_epi8(0x7f))) != 0;
  }

  // Whole numbers of 32 bits, kLanes of them, and kLanes pairs of 16 bits.
  using N = __m256i;
  static N ZeroN() { return _mm256_setzero_si256(); }
  static N LoadN(const int32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void StoreN(int32_t* p, N v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  static F ToFloat(N v) { return _mm256_cvtepi32_ps(v); }
  static N LoadI8Pairs(const uint8_t* p) { return _mm256_cvtepi8_epi16(LoadWords(p)); }
  static N LoadI8PairsPart(const uint8_t* p, int64_t) { return LoadI8Pairs(p); }
  // The pair at p in every lane.
  static N SetPair(const int16_t* p) {
    int32_t pair;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return _mm256_set1_epi32(pair);
  }
  // sum + a.first * b.first + a.second * b.second
  static N AddProducts(N a, N b, N sum) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
  // Rounded to whole numbers, which must be within 16 bits.
  static void StoreI16(int16_t* p, F v) {
    const __m256i whole = _mm256_cvtps_epi32(v);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1)));
  }

  // Doubles, half as many lanes.
  using D = __m256d;
  using I = __m256i;
  static D SetD(double x) { return _mm256_set1_pd(x); }
  static D WidenHalf(F v, int half) {
    return _mm256_cvtps_pd(half == 0 ? _mm256_castps256_ps128(v) : _mm256_extractf128_ps(v, 1));
  }
  static F Narrow(D low, D high) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high), 1);
  }
  static D FmaD(D a, D b, D c) { return _mm256_fmadd_pd(a, b, c); }
  static D FnmaD(D a, D b, D c) { return _mm256_fnmadd_pd(a, b, c); }
  static D MulD(D a, D b) { return _mm256_mul_pd(a, b); }
  static D AddD(D a, D b) { return _mm256_add_pd(a, b); }
  static D SubD(D a, D b) { return _mm256_sub_pd(a, b); }
  static I Bits(D v) { return _mm256_castpd_si256(v); }
  static I AddOne(I v) { return _mm256_add_epi64(v, _mm256_set1_epi64x(1)); }
  // Bit 0 of i set ? x : y
  static D IfOdd(I i, D x, D y) { return _mm256_blendv_pd(y, x, _mm256_castsi256_pd(_mm256_slli_epi64(i, 63))); }
  // v, negated where bit 1 of i is set.
  static D NegateIfBit1(D v, I i) {
    const I sign = _mm256_slli_epi64(_mm256_and_si256(i, _mm256_set1_epi64x(2)), 62);
    return _mm256_xor_pd(v, _mm256_castsi256_pd(sign));
  }

 private:
  static __m256i Mask(int64_t n) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes);
  }
  static __m128i LoadWords(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
  static F Widen(__m128i v) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16)); }
  static F Power(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
};

}  // namespace
}  // namespace vt
