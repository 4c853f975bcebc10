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

  // Dwords of kLanes rows: row r comes in v[r], column c leaves in v[c].
  static void Transpose(F (&v)[16]) {
    F t[16];
    VT_UNROLL
    for (int i = 0; i < 16; i += 2) {
      t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
      t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    VT_UNROLL
    for (int i = 0; i < 16; i += 4) {
      VT_UNROLL
      for (int j = 0; j < 2; ++j) {
        const __m512d a = _mm512_castps_pd(t[i + j]), b = _mm512_castps_pd(t[i + 2 + j]);
        v[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
        v[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
      }
    }
    VT_UNROLL
    for (int i = 0; i < 4; ++i) {
      t[i] = _mm512_shuffle_f32x4(v[i], v[i + 4], 0x88);
      t[i + 4] = _mm512_shuffle_f32x4(v[i], v[i + 4], 0xdd);
      t[i + 8] = _mm512_shuffle_f32x4(v[i + 8], v[i + 12], 0x88);
      t[i + 12] = _mm512_shuffle_f32x4(v[i + 8], v[i + 12], 0xdd);
    }
    VT_UNROLL
    for (int i = 0; i < 4; ++i) {
      v[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
      v[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
      v[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
      v[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
  }
  // The two bf16 of each dword as floats.
  static F LowBf16(F v) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(v), 16)); }
  static F HighBf16(F v) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0xffff << 16)));
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
  static F Widen(__m256i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)); }
  static float SumHalf(__m256 half) {
    __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
  }
};

}  // namespace
}  // namespace vt
