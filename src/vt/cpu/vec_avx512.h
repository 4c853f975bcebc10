// The vector vocabulary of the row and attention kernels on AVX-512 (F, BW, DQ, VL): 16 floats.
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
  using F = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kVectors = 4;  // vectors side by side in a register block of 6 rows

  static F Zero() { return _mm512_setzero_ps(); }
  static F Set(float x) { return _mm512_set1_ps(x); }
  static F Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, F v) { _mm512_storeu_ps(p, v); }
  // The first n lanes; the others are 0 and are not touched in memory.
  static F LoadPart(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(Mask(n), p); }
  static void StorePart(float* p, F v, int64_t n) { _mm512_mask_storeu_ps(p, Mask(n), v); }
  static F Add(F a, F b) { return _mm512_add_ps(a, b); }
  static F Sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F Mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F Div(F a, F b) { return _mm512_div_ps(a, b); }
  static F Sqrt(F a) { return _mm512_sqrt_ps(a); }
  static F Fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }    // a * b + c
  static F Fnma(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }  // c - a * b
  // With a NaN on either side the result is b.
  static F Max(F a, F b) { return _mm512_max_ps(a, b); }
  static F Min(F a, F b) { return _mm512_min_ps(a, b); }
  static F Round(F a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  // p * 2^n, n a whole number.
  static F Scale(F p, F n) { return _mm512_scalef_ps(p, n); }
  static F Abs(F a) { return _mm512_abs_ps(a); }
  // |magnitude| with the sign of `sign`.
  static F CopySign(F magnitude, F sign) {
    const __m512i bit = _mm512_set1_epi32(INT32_MIN);
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(bit, _mm512_castps_si512(sign), _mm512_castps_si512(magnitude), 0xca));
  }
  // a < b ? x : y
  static F IfLess(F a, F b, F x, F y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x); }
  static float Sum(F v) {
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    return SumHalf(half);
  }
  static float Largest(F v) {
    const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    quarter = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(quarter, _mm_movehdup_ps(quarter)));
  }
  static float First(F v) { return _mm512_cvtss_f32(v); }

  // A condition for each lane.
  using M = __mmask16;
  static M Unordered(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }  // either is NaN
  static M Equal(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static M Greater(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  static M Or(M a, M b) { return static_cast<M>(a | b); }
  static bool Any(M m) { return m != 0; }
  // The lowest lane that is set; one is.
  static int FirstLane(M m) { return __builtin_ctz(m); }

  static F LoadBf16(const uint16_t* p) { return Widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static F LoadBf16Part(const uint16_t* p, int64_t n) { return Widen(_mm256_maskz_loadu_epi16(Mask(n), p)); }
  // Rounds to nearest even; a NaN stays one.
  static void StoreBf16Part(uint16_t* p, F v, int64_t n) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
    const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
    rounded = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), quiet);
    _mm256_mask_storeu_epi16(p, Mask(n), _mm512_cvtepi32_epi16(rounded));
  }

  static F LoadHalf(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F LoadHalfPart(const uint16_t* p, int64_t n) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(Mask(n), p)); }
  // Rounds to nearest even.
  static void StoreHalfPart(uint16_t* p, F v, int64_t n) {
    _mm256_mask_storeu_epi16(p, Mask(n), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  // kLanes pairs of elements: the first ones of the pairs in a, the second ones in b. The part functions read n pairs.
  static void LoadBf16Pairs(const uint8_t* p, F& a, F& b) {
    const __m512i v = _mm512_loadu_si512(p);
    a = _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
    b = _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(0xffff << 16)));
  }
  static void LoadE5m2Pairs(const uint8_t* p, F& a, F& b) { WidenE5m2(LoadWords(p), a, b); }
  static void LoadE5m2PairsPart(const uint8_t* p, int64_t n, F& a, F& b) { WidenE5m2(LoadWordsPart(p, n), a, b); }
  // Times 2^-8; NaN is not known and becomes 1.875.
  static void LoadE4m3Pairs(const uint8_t* p, F& a, F& b) { WidenE4m3(LoadWords(p), a, b); }
  static void LoadE4m3PairsPart(const uint8_t* p, int64_t n, F& a, F& b) { WidenE4m3(LoadWordsPart(p, n), a, b); }
  // Whether one of `bytes`, a multiple of 64, is 0x7f.
  static bool AnyByteIs7f(const uint8_t* p, int64_t bytes) {
    __m512i largest = _mm512_loadu_si512(p);
    for (int64_t i = 64; i < bytes; i += 64) largest = _mm512_max_epi8(largest, _mm512_loadu_si512(p + i));
    return _mm512_cmpeq_epi8_mask(largest, _mm512_set1_epi8(0x7f)) != 0;
  }

  // Whole numbers of 32 bits, kLanes of them, and kLanes pairs of 16 bits.
  using N = __m512i;
  static N ZeroN() { return _mm512_setzero_si512(); }
  static N LoadN(const int32_t* p) { return _mm512_loadu_si512(p); }
  static void StoreN(int32_t* p, N v) { _mm512_storeu_si512(p, v); }
  static F ToFloat(N v) { return _mm512_cvtepi32_ps(v); }
  static N LoadI8Pairs(const uint8_t* p) { return _mm512_cvtepi8_epi16(LoadWords(p)); }
  static N LoadI8PairsPart(const uint8_t* p, int64_t n) { return _mm512_cvtepi8_epi16(LoadWordsPart(p, n)); }
  // The pair at p in every lane.
  static N SetPair(const int16_t* p) {
    int32_t pair;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return _mm512_set1_epi32(pair);
  }
  // sum + a.first * b.first + a.second * b.second
  static N AddProducts(N a, N b, N sum) {
#ifdef __AVX512VNNI__
    return _mm512_dpwssd_epi32(sum, a, b);
#else
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
#endif
  }
  // Rounded to whole numbers, which must be within 16 bits.
  static void StoreI16(int16_t* p, F v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(v)));
  }

  // Doubles, half as many lanes.
  using D = __m512d;
  using I = __m512i;
  static D SetD(double x) { return _mm512_set1_pd(x); }
  static D WidenHalf(F v, int half) {
    return _mm512_cvtps_pd(half == 0 ? _mm512_castps512_ps256(v) : _mm512_extractf32x8_ps(v, 1));
  }
  static F Narrow(D low, D high) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
  }
  static D FmaD(D a, D b, D c) { return _mm512_fmadd_pd(a, b, c); }
  static D FnmaD(D a, D b, D c) { return _mm512_fnmadd_pd(a, b, c); }
  static D MulD(D a, D b) { return _mm512_mul_pd(a, b); }
  static D AddD(D a, D b) { return _mm512_add_pd(a, b); }
  static D SubD(D a, D b) { return _mm512_sub_pd(a, b); }
  static I Bits(D v) { return _mm512_castpd_si512(v); }
  static I AddOne(I v) { return _mm512_add_epi64(v, _mm512_set1_epi64(1)); }
  // Bit 0 of i set ? x : y
  static D IfOdd(I i, D x, D y) { return _mm512_mask_blend_pd(_mm512_test_epi64_mask(i, _mm512_set1_epi64(1)), y, x); }
  // v, negated where bit 1 of i is set.
  static D NegateIfBit1(D v, I i) {
    const I sign = _mm512_slli_epi64(_mm512_and_si512(i, _mm512_set1_epi64(2)), 62);
    return _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(v), sign));
  }

 private:
  static __mmask16 Mask(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
  static __m256i LoadWords(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static __m256i LoadWordsPart(const uint8_t* p, int64_t n) { return _mm256_maskz_loadu_epi16(Mask(n), p); }
  static void WidenE5m2(__m256i words, F& a, F& b) {
    a = _mm512_cvtph_ps(_mm256_slli_epi16(words, 8));
    b = _mm512_cvtph_ps(_mm256_and_si256(words, _mm256_set1_epi16(static_cast<int16_t>(0xff00))));
  }
  static void WidenE4m3(__m256i words, F& a, F& b) {
    const __m256i bits = _mm256_set1_epi16(static_cast<int16_t>(0xbf80));
    a = _mm512_cvtph_ps(_mm256_and_si256(_mm256_srai_epi16(_mm256_slli_epi16(words, 8), 1), bits));
    b = _mm512_cvtph_ps(_mm256_and_si256(_mm256_srai_epi16(words, 1), bits));
  }
  static F Widen(__m256i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)); }
  static float SumHalf(__m256 half) {
    __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
  }
};

}  // namespace
}  // namespace vt
