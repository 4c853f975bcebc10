// Float lanes as compiler vectors, as many as the unit's instruction set has: the same bits on every CPU.
//
// Everything is in an unnamed namespace: a shared inline function compiled for a better instruction set could replace
// its generic copy at link time and die on lesser machines.
#pragma once
#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace vllm {
namespace {

#ifdef __AVX2__
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

using Floats = float __attribute__((vector_size(4 * kLanes)));
using Ints = int32_t __attribute__((vector_size(4 * kLanes)));
using Uints = uint32_t __attribute__((vector_size(4 * kLanes)));

inline Floats Load(const float* from) {
  Floats out;
  std::memcpy(&out, from, sizeof out);
  return out;
}
inline void Store(float* to, Floats value) { std::memcpy(to, &value, sizeof value); }
inline Floats Fill(float value) { return Floats{} + value; }
inline Uints FillU(uint32_t value) { return Uints{} + value; }
// first, first + 1, ...
inline Uints Count(uint32_t first) {
#ifdef __AVX2__
  return Uints{0, 1, 2, 3, 4, 5, 6, 7} + first;
#else
  return Uints{0, 1, 2, 3} + first;
#endif
}

template <class To, class From>
inline To BitCast(From from) {
  To to;
  static_assert(sizeof to == sizeof from);
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// a where the mask is set, else b.
inline Floats Select(Ints mask, Floats a, Floats b) {
  return BitCast<Floats>((mask & BitCast<Ints>(a)) | (~mask & BitCast<Ints>(b)));
}
inline Floats Max(Floats a, Floats b) { return Select(a > b, a, b); }
// A bit for each lane whose mask is set.
inline uint32_t Bits(Ints mask) {
#if defined(__AVX2__)
  return static_cast<uint32_t>(_mm256_movemask_ps(BitCast<__m256>(mask)));
#elif defined(__SSE2__)
  return static_cast<uint32_t>(_mm_movemask_ps(BitCast<__m128>(mask)));
#else
  uint32_t bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) bits |= (mask[lane] & 1u) << lane;
  return bits;
#endif
}

// exp(x) for x <= 0: x = n ln2 + f, |f| <= ln2 / 2, a degree-6 polynomial for exp(f), n added to the exponent bits.
inline Floats ExpNonPositive(Floats x) {
  const Floats magic = Fill(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer in the low mantissa bits
  const Ints tiny = x < Fill(-87.0f);
  x = Select(tiny, Fill(-87.0f), x);
  const Floats shifted = x * 1.44269504f + magic;
  const Floats n = shifted - magic;
  const Floats f = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Floats p = Fill(1.3888889e-3f);
  p = p * f + 8.3333333e-3f;
  p = p * f + 4.1666667e-2f;
  p = p * f + 1.6666667e-1f;
  p = p * f + 0.5f;
  p = p * f + 1.0f;
  p = p * f + 1.0f;
  const Ints exponent = (BitCast<Ints>(shifted) - 0x4B400000) << 23;
  return Select(tiny, Fill(0.0f), BitCast<Floats>(BitCast<Ints>(p) + exponent));
}

}  // namespace
}  // namespace vllm
