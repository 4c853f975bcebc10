// The vector vocabulary of linear_generic.h on AVX2, FMA and F16C: 8 floats. Only for units compiled with those flags.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#define VT_INLINE inline __attribute__((always_inline))

namespace {

using VF = __m256;
constexpr int kWidth = 8;
// Tile of the GEMM: 12 sums and one or two x of the 16 registers; weights come from memory.
constexpr int kTileRows = 3;
// Columns that the few-row kernels sum at once: enough independent sums to hide the latency of a multiply-add, few
// enough to stay in registers.
constexpr int FewRowColumns(int rows) { return rows <= 2 ? 4 : rows <= 4 ? 2 : 1; }
// Vectors of sums and weights that fit beside temporaries.
constexpr int kFreeRegisters = 13;

VT_INLINE VF Zero() { return _mm256_setzero_ps(); }
VT_INLINE VF Splat(float v) { return _mm256_set1_ps(v); }
VT_INLINE VF LoadF32(const void* p) { return _mm256_loadu_ps(static_cast<const float*>(p)); }
VT_INLINE void StoreF32(float* p, VF v) { _mm256_storeu_ps(p, v); }
VT_INLINE VF LoadF16(const void* p) { return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p))); }
VT_INLINE VF LoadBF16(const void* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
VT_INLINE VF LoadS8(const void* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p))));
}
VT_INLINE VF SplatF16(const void* p) {
  int16_t bits;
  std::memcpy(&bits, p, 2);
  return _mm256_cvtph_ps(_mm_set1_epi16(bits));
}
VT_INLINE VF Mul(VF a, VF b) { return _mm256_mul_ps(a, b); }
VT_INLINE VF Fma(VF a, VF b, VF c) { return _mm256_fmadd_ps(a, b, c); }
VT_INLINE VF FmaNegC(VF a, VF b, VF c) { return _mm256_fmsub_ps(a, b, c); }

// scale * q + offset, computed.
struct NibbleTable {
  VF scale, offset;
};
VT_INLINE NibbleTable MakeTable(VF scale, VF offset) { return {scale, offset}; }
// scale * (q - kCenter): exact for scales that were F16.
template <int kCenter>
VT_INLINE NibbleTable MakeCenteredTable(VF scale) {
  return {scale, Mul(scale, Splat(-kCenter))};
}

struct Bytes16 {
  __m128i bytes;
};
VT_INLINE Bytes16 LoadBytes16(const void* p) { return {_mm_loadu_si128(static_cast<const __m128i*>(p))}; }

VT_INLINE void FromS8(__m128i bytes, VF (&out)[2]) {
  out[0] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  out[1] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)));
}
VT_INLINE void LowNibbles(Bytes16 b, NibbleTable t, VF (&out)[2]) {
  FromS8(_mm_and_si128(b.bytes, _mm_set1_epi8(15)), out);
  out[0] = Fma(out[0], t.scale, t.offset);
  out[1] = Fma(out[1], t.scale, t.offset);
}
VT_INLINE void HighNibbles(Bytes16 b, NibbleTable t, VF (&out)[2]) {
  FromS8(_mm_and_si128(_mm_srli_epi16(b.bytes, 4), _mm_set1_epi8(15)), out);
  out[0] = Fma(out[0], t.scale, t.offset);
  out[1] = Fma(out[1], t.scale, t.offset);
}

VT_INLINE VF AddWhere8(uint32_t bits, VF step, VF v) {
  const __m256i lane_bit = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);
  const __m256i set =
      _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), lane_bit), lane_bit);
  return _mm256_add_ps(v, _mm256_and_ps(_mm256_castsi256_ps(set), step));
}
VT_INLINE void AddWhere(uint32_t bits, VF step, VF (&v)[4]) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) v[i] = AddWhere8(bits >> (8 * i) & 255, step, v[i]);
}

VT_INLINE __m128 Reduce4(VF a, VF b, VF c, VF d) {
  const VF ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
  const VF cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
  const __m256d ab2 = _mm256_castps_pd(ab), cd2 = _mm256_castps_pd(cd);
  const VF abcd =
      _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(ab2, cd2)), _mm256_castpd_ps(_mm256_unpackhi_pd(ab2, cd2)));
  return _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1));
}

}  // namespace
