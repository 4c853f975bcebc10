// The vector vocabulary of linear_generic.h on AVX-512 (F, BW, DQ, VL): 16 floats. Only for units compiled with those
// flags.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#define VT_INLINE inline __attribute__((always_inline))

namespace {

using VF = __m512;
constexpr int kWidth = 16;
// Tile of the GEMM: 24 sums, 4 weights and one x of the 32 registers.
constexpr int kTileRows = 6;
// Columns that the few-row kernels sum at once: enough independent sums to hide the latency of a multiply-add, few
// enough to stay in registers.
constexpr int FewRowColumns(int rows) { return rows <= 4 ? 4 : 2; }
// Vectors of sums and weights that fit beside temporaries.
constexpr int kFreeRegisters = 26;

VT_INLINE VF Zero() { return _mm512_setzero_ps(); }
VT_INLINE VF Splat(float v) { return _mm512_set1_ps(v); }
VT_INLINE VF LoadF32(const void* p) { return _mm512_loadu_ps(p); }
VT_INLINE void StoreF32(float* p, VF v) { _mm512_storeu_ps(p, v); }
VT_INLINE VF LoadF16(const void* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
VT_INLINE VF LoadBF16(const void* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
VT_INLINE VF LoadS8(const void* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))));
}
// One F16 number in all lanes.
VT_INLINE VF SplatF16(const void* p) {
  int16_t bits;
  std::memcpy(&bits, p, 2);
  return _mm512_cvtph_ps(_mm256_set1_epi16(bits));
}
VT_INLINE VF Mul(VF a, VF b) { return _mm512_mul_ps(a, b); }
VT_INLINE VF Fma(VF a, VF b, VF c) { return _mm512_fmadd_ps(a, b, c); }
VT_INLINE VF FmaNegC(VF a, VF b, VF c) { return _mm512_fmsub_ps(a, b, c); }

VT_INLINE VF Iota() { return _mm512_set_ps(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0); }

// The 16 values scale * q + offset of a 4-bit format, looked up by permutation: vpermps reads four bits of its index,
// so the nibbles need no mask.
struct NibbleTable {
  VF values;
};
VT_INLINE NibbleTable MakeTable(VF scale, VF offset) { return {Fma(scale, Iota(), offset)}; }
// scale * (q - kCenter): exact for scales that were F16.
template <int kCenter>
VT_INLINE NibbleTable MakeCenteredTable(VF scale) {
  return {Mul(scale, _mm512_sub_ps(Iota(), Splat(kCenter)))};
}

// 16 bytes, one in each lane.
struct Bytes16 {
  __m512i wide;
};
VT_INLINE Bytes16 LoadBytes16(const void* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)))};
}
VT_INLINE void LowNibbles(Bytes16 b, NibbleTable t, VF (&out)[1]) { out[0] = _mm512_permutexvar_ps(b.wide, t.values); }
VT_INLINE void HighNibbles(Bytes16 b, NibbleTable t, VF (&out)[1]) {
  out[0] = _mm512_permutexvar_ps(_mm512_srli_epi32(b.wide, 4), t.values);
}

// Adds `step` to the elements whose bit is set.
VT_INLINE void AddWhere(uint32_t bits, VF step, VF (&v)[2]) {
  v[0] = _mm512_mask_add_ps(v[0], static_cast<__mmask16>(bits), v[0], step);
  v[1] = _mm512_mask_add_ps(v[1], static_cast<__mmask16>(bits >> 16), v[1], step);
}

// Signed bytes of a 128-bit register.
VT_INLINE void FromS8(__m128i bytes, VF (&out)[1]) { out[0] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)); }

// The sums of four vectors. Each is added up in the same order: lanes of a quarter, then quarters.
VT_INLINE __m128 Reduce4(VF a, VF b, VF c, VF d) {
  const VF ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  const VF cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
  const __m512d ab2 = _mm512_castps_pd(ab), cd2 = _mm512_castps_pd(cd);
  const VF abcd =
      _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(ab2, cd2)), _mm512_castpd_ps(_mm512_unpackhi_pd(ab2, cd2)));
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(abcd), _mm512_extractf32x8_ps(abcd, 1));
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

}  // namespace
