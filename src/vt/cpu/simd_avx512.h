// The vector vocabulary of the linear kernels on AVX-512 (F, BW, DQ, VL): 16 columns. Only for units compiled with
// those flags; with VNNI, if they have it.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#define VT_INLINE inline __attribute__((always_inline))

namespace {

using VF = __m512;
using VI = __m512i;
constexpr int kLanes = 16;
// Rows of the GEMMs' tiles, two vectors of columns wide: 24 sums at most beside weights and temporaries.
constexpr int kIntTileRows = 6, kFloatTileRows = 10;
// Few-row kernels: how many rows they take, and the vectors of columns that they sum at once.
constexpr int kFewRows = 8;
constexpr int FewVectors(int rows) { return rows == 1 ? 4 : rows <= 4 ? 2 : 1; }
constexpr int FewIntVectors(int rows) { return FewVectors(rows); }

VT_INLINE VF Zero() { return _mm512_setzero_ps(); }
VT_INLINE VF Splat(float v) { return _mm512_set1_ps(v); }
VT_INLINE VF LoadF(const void* p) { return _mm512_loadu_ps(p); }
VT_INLINE void StoreF(float* p, VF v) { _mm512_storeu_ps(p, v); }
VT_INLINE __mmask16 First(int count) { return static_cast<__mmask16>((1u << count) - 1); }
// The first `count` <= kLanes elements; others are zero and not touched in memory.
VT_INLINE VF LoadFirst(const float* p, int count) { return _mm512_maskz_loadu_ps(First(count), p); }
VT_INLINE void StoreFirst(float* p, VF v, int count) { _mm512_mask_storeu_ps(p, First(count), v); }
VT_INLINE VF Mul(VF a, VF b) { return _mm512_mul_ps(a, b); }
VT_INLINE VF Add(VF a, VF b) { return _mm512_add_ps(a, b); }
VT_INLINE VF Fma(VF a, VF b, VF c) { return _mm512_fmadd_ps(a, b, c); }
VT_INLINE VF Negate(VF a) { return _mm512_xor_ps(a, Splat(-0.0f)); }
VT_INLINE VF BitsAsFloat(VI v) { return _mm512_castsi512_ps(v); }

VT_INLINE VI ZeroI() { return _mm512_setzero_si512(); }
VT_INLINE VI SplatI(int32_t v) { return _mm512_set1_epi32(v); }
VT_INLINE VI LoadI(const void* p) { return _mm512_loadu_si512(p); }
VT_INLINE void StoreI(void* p, VI v) { _mm512_storeu_si512(p, v); }
VT_INLINE VI And(VI a, uint32_t mask) { return _mm512_and_si512(a, SplatI(static_cast<int32_t>(mask))); }
VT_INLINE VI Or(VI a, VI b) { return _mm512_or_si512(a, b); }
// Shifts of 32-bit lanes by any count below 32.
VT_INLINE VI ShiftRight(VI a, int64_t n) { return _mm512_srlv_epi32(a, SplatI(static_cast<int32_t>(n))); }
VT_INLINE VI ShiftLeft(VI a, int64_t n) { return _mm512_sllv_epi32(a, SplatI(static_cast<int32_t>(n))); }
VT_INLINE VI ShiftRightSigned(VI a, int64_t n) { return _mm512_srav_epi32(a, SplatI(static_cast<int32_t>(n))); }
// Rotation by any count; callers keep only bits that a shift would leave in place as well.
VT_INLINE VI RotateRight(VI a, int64_t n) { return _mm512_rorv_epi32(a, SplatI(static_cast<int32_t>(n))); }
// Byte n of each lane.
VT_INLINE VI ByteOf(VI a, int n) {
  const __m128i bytes = _mm_setr_epi32(0, 4, 8, 12);
  const __m128i index =
      _mm_add_epi32(_mm_or_si128(bytes, _mm_set1_epi32(static_cast<int>(0x80808000u))), _mm_set1_epi32(n));
  return _mm512_shuffle_epi8(a, _mm512_broadcast_i32x4(index));
}
// The upper bytes of 16-bit lanes.
VT_INLINE VI UpperBytes(VI a) { return _mm512_srli_epi16(a, 8); }
VT_INLINE VI Add32(VI a, VI b) { return _mm512_add_epi32(a, b); }
VT_INLINE VI Sub16(VI a, VI b) { return _mm512_sub_epi16(a, b); }
VT_INLINE VF ToFloat(VI a) { return _mm512_cvtepi32_ps(a); }
// kLanes halves: as numbers, and as integers.
VT_INLINE VF LoadHalves(const void* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
VT_INLINE VI LoadHalvesI(const void* p) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
// Bytes table[index] of bytes below 16.
VT_INLINE VI Lookup(const uint8_t (&table)[16], VI index) {
  const __m128i small = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(small), index);
}
// A sum that is not to be merged with others: compilers add up products in an order that needs more registers than
// there are, and spill them.
VT_INLINE VI InOrder(VI sum) {
  asm("" : "+v"(sum));
  return sum;
}
// sum + a.low * b.low + a.high * b.high of the 16-bit halves of each lane, without saturation here.
VT_INLINE VI Dot(VI sum, VI a, VI b) {
#ifdef __AVX512VNNI__
  return _mm512_dpwssd_epi32(sum, a, b);
#else
  return InOrder(_mm512_add_epi32(sum, _mm512_madd_epi16(a, b)));
#endif
}

// Products of bytes, a unsigned and b signed: adds the four of each 32-bit lane to its sum, or, narrow, the two of each
// 16-bit lane to its own.
#ifdef __AVX512VNNI__
constexpr bool kNarrowSums = false;
VT_INLINE VI DotBytes(VI sum, VI a, VI b) { return _mm512_dpbusd_epi32(sum, a, b); }
#else
constexpr bool kNarrowSums = true;
VT_INLINE VI DotBytes(VI sum, VI a, VI b) { return InOrder(_mm512_add_epi16(sum, _mm512_maddubs_epi16(a, b))); }
#endif

// Sixteen values: rounded to integers, and the largest bits of a magnitude.
VT_INLINE VI RoundToInt(VF v) { return _mm512_cvtps_epi32(v); }
VT_INLINE uint32_t MaxMagnitudeBits16(const float* x) {
  return static_cast<uint32_t>(_mm512_reduce_max_epi32(And(LoadI(x), 0x7fffffffu)));
}
// Rounds sixteen values times `inverse` to 16 bits, stored with the middle two of every four swapped; returns their
// sum.
VT_INLINE int32_t Quantize16(const float* x, float inverse, int16_t* out) {
  const VI q = RoundToInt(Mul(LoadF(x), Splat(inverse)));
  const __m256i order = _mm256_broadcastsi128_si256(_mm_set_epi8(15, 14, 11, 10, 13, 12, 9, 8, 7, 6, 3, 2, 5, 4, 1, 0));
  const __m256i swapped = _mm256_shuffle_epi8(_mm512_cvtepi32_epi16(q), order);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), swapped);
  return _mm512_reduce_add_epi32(q);
}
// The same as two planes of bytes in order, q = 256 * high + low.
VT_INLINE int32_t QuantizePlanes16(const float* x, float inverse, int8_t* high, int8_t* low) {
  const VI q = RoundToInt(Mul(LoadF(x), Splat(inverse)));
  const VI upper = ShiftRightSigned(Add32(q, SplatI(128)), 8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(high), _mm512_cvtepi32_epi8(upper));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(low), _mm512_cvtepi32_epi8(q));
  return _mm512_reduce_add_epi32(q);
}
// The same as one plane of bytes, |q| <= 127.
VT_INLINE int32_t QuantizePlane16(const float* x, float inverse, int8_t* out) {
  const VI q = RoundToInt(Mul(LoadF(x), Splat(inverse)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(q));
  return _mm512_reduce_add_epi32(q);
}

}  // namespace
