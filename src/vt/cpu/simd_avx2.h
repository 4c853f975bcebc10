// The vector vocabulary of the linear kernels on AVX2, FMA and F16C: 8 columns. Only for units compiled with those
// flags; with AVX-VNNI, if they have it.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#define VT_INLINE inline __attribute__((always_inline))

namespace {

using VF = __m256;
using VI = __m256i;
constexpr int kLanes = 8;
// Rows of the GEMMs' tiles, two vectors of columns wide: 12 sums at most beside weights and temporaries.
constexpr int kIntTileRows = 3, kFloatTileRows = 6;
// Few-row kernels: how many rows they take, and the vectors of columns that they sum at once.
constexpr int kFewRows = 6;
constexpr int FewVectors(int rows) { return rows <= 3 ? 2 : 1; }
#ifdef __AVXVNNI__
constexpr int FewIntVectors(int rows) { return FewVectors(rows); }
#else
constexpr int FewIntVectors(int rows) { return rows == 1 ? 4 : 2; }
#endif

VT_INLINE VF Zero() { return _mm256_setzero_ps(); }
VT_INLINE VF Splat(float v) { return _mm256_set1_ps(v); }
VT_INLINE VF LoadF(const void* p) { return _mm256_loadu_ps(static_cast<const float*>(p)); }
VT_INLINE void StoreF(float* p, VF v) { _mm256_storeu_ps(p, v); }
VT_INLINE __m256i First(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}
// The first `count` <= kLanes elements; others are zero and not touched in memory.
VT_INLINE VF LoadFirst(const float* p, int count) { return _mm256_maskload_ps(p, First(count)); }
VT_INLINE void StoreFirst(float* p, VF v, int count) { _mm256_maskstore_ps(p, First(count), v); }
VT_INLINE VF Mul(VF a, VF b) { return _mm256_mul_ps(a, b); }
VT_INLINE VF Add(VF a, VF b) { return _mm256_add_ps(a, b); }
VT_INLINE VF Fma(VF a, VF b, VF c) { return _mm256_fmadd_ps(a, b, c); }
VT_INLINE VF Negate(VF a) { return _mm256_xor_ps(a, Splat(-0.0f)); }
VT_INLINE VF BitsAsFloat(VI v) { return _mm256_castsi256_ps(v); }

VT_INLINE VI ZeroI() { return _mm256_setzero_si256(); }
VT_INLINE VI SplatI(int32_t v) { return _mm256_set1_epi32(v); }
VT_INLINE VI LoadI(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
VT_INLINE void StoreI(void* p, VI v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
VT_INLINE VI And(VI a, uint32_t mask) { return _mm256_and_si256(a, SplatI(static_cast<int32_t>(mask))); }
VT_INLINE VI Or(VI a, VI b) { return _mm256_or_si256(a, b); }
// Shifts of 32-bit lanes by any count below 32.
VT_INLINE VI ShiftRight(VI a, int64_t n) { return _mm256_srlv_epi32(a, SplatI(static_cast<int32_t>(n))); }
VT_INLINE VI ShiftLeft(VI a, int64_t n) { return _mm256_sllv_epi32(a, SplatI(static_cast<int32_t>(n))); }
VT_INLINE VI ShiftRightSigned(VI a, int64_t n) { return _mm256_srav_epi32(a, SplatI(static_cast<int32_t>(n))); }
// As a rotation for bits that are not shifted out.
VT_INLINE VI RotateRight(VI a, int64_t n) { return n >= 0 ? ShiftRight(a, n) : ShiftLeft(a, -n); }
// Byte n of each lane.
VT_INLINE VI ByteOf(VI a, int n) {
  const __m128i bytes = _mm_setr_epi32(0, 4, 8, 12);
  const __m128i index =
      _mm_add_epi32(_mm_or_si128(bytes, _mm_set1_epi32(static_cast<int>(0x80808000u))), _mm_set1_epi32(n));
  return _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(index));
}
// The upper bytes of 16-bit lanes.
VT_INLINE VI UpperBytes(VI a) { return _mm256_srli_epi16(a, 8); }
VT_INLINE VI Add32(VI a, VI b) { return _mm256_add_epi32(a, b); }
VT_INLINE VI Sub16(VI a, VI b) { return _mm256_sub_epi16(a, b); }
VT_INLINE VF ToFloat(VI a) { return _mm256_cvtepi32_ps(a); }
// kLanes halves: as numbers, and as integers.
VT_INLINE VF LoadHalves(const void* p) { return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p))); }
VT_INLINE VI LoadHalvesI(const void* p) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
// Bytes table[index] of bytes below 16.
VT_INLINE VI Lookup(const uint8_t (&table)[16], VI index) {
  const __m128i small = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(small), index);
}
// A sum that is not to be merged with others: compilers add up products in an order that needs more registers than
// there are, and spill them.
VT_INLINE VI InOrder(VI sum) {
  asm("" : "+x"(sum));
  return sum;
}
// sum + a.low * b.low + a.high * b.high of the 16-bit halves of each lane, without saturation here.
VT_INLINE VI Dot(VI sum, VI a, VI b) {
#ifdef __AVXVNNI__
  return _mm256_dpwssd_avx_epi32(sum, a, b);
#else
  return InOrder(_mm256_add_epi32(sum, _mm256_madd_epi16(a, b)));
#endif
}

// Products of bytes, a unsigned and b signed: adds the four of each 32-bit lane to its sum, or, narrow, the two of each
// 16-bit lane to its own.
#ifdef __AVXVNNI__
constexpr bool kNarrowSums = false;
VT_INLINE VI DotBytes(VI sum, VI a, VI b) { return _mm256_dpbusd_avx_epi32(sum, a, b); }
#else
constexpr bool kNarrowSums = true;
VT_INLINE VI DotBytes(VI sum, VI a, VI b) { return InOrder(_mm256_add_epi16(sum, _mm256_maddubs_epi16(a, b))); }
#endif

VT_INLINE __m128i Fold(__m256i v, __m128i (*op)(__m128i, __m128i)) {
  return op(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}
// Sixteen values: the largest bits of a magnitude.
VT_INLINE uint32_t MaxMagnitudeBits16(const float* x) {
  __m128i m = Fold(_mm256_max_epi32(And(LoadI(x), 0x7fffffffu), And(LoadI(x + 8), 0x7fffffffu)), _mm_max_epi32);
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(m));
}
// Rounds sixteen values times `inverse` to 16 bits, stored with the middle two of every four swapped; returns their
// sum.
VT_INLINE int32_t SumOf(VI a, VI b) {
  __m128i sum = Fold(Add32(a, b), _mm_add_epi32);
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  return _mm_cvtsi128_si32(sum);
}
VT_INLINE int32_t Quantize16(const float* x, float inverse, int16_t* out) {
  const VI low = _mm256_cvtps_epi32(Mul(LoadF(x), Splat(inverse)));
  const VI high = _mm256_cvtps_epi32(Mul(LoadF(x + 8), Splat(inverse)));
  const VI order = _mm256_broadcastsi128_si256(_mm_set_epi8(15, 14, 11, 10, 13, 12, 9, 8, 7, 6, 3, 2, 5, 4, 1, 0));
  const VI packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
  StoreI(out, _mm256_shuffle_epi8(packed, order));
  return SumOf(low, high);
}
// Sixteen integers of 8 bits as bytes.
VT_INLINE void StoreBytes16(VI first, VI second, int8_t* out) {
  const VI words = _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
}
// The same as two planes of bytes in order, q = 256 * high + low.
VT_INLINE int32_t QuantizePlanes16(const float* x, float inverse, int8_t* high, int8_t* low) {
  const VI first = _mm256_cvtps_epi32(Mul(LoadF(x), Splat(inverse)));
  const VI second = _mm256_cvtps_epi32(Mul(LoadF(x + 8), Splat(inverse)));
  const VI half = SplatI(128);
  const VI a = ShiftRightSigned(Add32(first, half), 8), b = ShiftRightSigned(Add32(second, half), 8);
  StoreBytes16(a, b, high);
  StoreBytes16(_mm256_sub_epi32(first, ShiftLeft(a, 8)), _mm256_sub_epi32(second, ShiftLeft(b, 8)), low);
  return SumOf(first, second);
}
// The same as one plane of bytes, |q| <= 127.
VT_INLINE int32_t QuantizePlane16(const float* x, float inverse, int8_t* out) {
  const VI first = _mm256_cvtps_epi32(Mul(LoadF(x), Splat(inverse)));
  const VI second = _mm256_cvtps_epi32(Mul(LoadF(x + 8), Splat(inverse)));
  StoreBytes16(first, second, out);
  return SumOf(first, second);
}

}  // namespace
