// The hash behind the sampling noise, over one word or over lanes of words; and a cheap upper bound of the noise.
#pragma once
#include <cstdint>

#include "engine/sample/lanes.h"

namespace vllm {
namespace {

template <class Word>
inline Word Rotate(Word value, int by) {
  return (value << by) | (value >> (32 - by));
}

template <class Word>
inline Word Mix(Word hash, Word key) {
  key = Rotate<Word>(key * 0xCC9E2D51u, 15) * 0x1B873593u;
  return Rotate<Word>(hash ^ key, 13) * 5u + 0xE6546B64u;
}

template <class Word>
inline Word Finish(Word hash) {
  hash ^= 16u;  // bytes hashed
  hash = (hash ^ (hash >> 16)) * 0x85EBCA6Bu;
  hash = (hash ^ (hash >> 13)) * 0xC2B2AE35u;
  return hash ^ (hash >> 16);
}

// An upper bound of the noise, a little too large (rounding included): -log(-log(1-u)) <= -log(u), and log2(u) is at
// least its chord, read off the float's bits.
inline Floats NoiseBound(Uints bits) {
  // Both halves convert exactly; the sum is rounded, hence the slack at the end.
  const Floats high = __builtin_convertvector(BitCast<Ints>(bits >> 16), Floats);
  const Floats low = __builtin_convertvector(BitCast<Ints>(bits & 0xFFFFu), Floats);
  const Floats u = high * 1.52587890625e-05f + (low + 0.5f) * 2.3283064365386963e-10f;
  const Floats log2_chord = __builtin_convertvector(BitCast<Ints>(u) - 0x3F800000, Floats) * 1.1920929e-07f;
  return log2_chord * -0.69314718f + 1e-4f;
}

}  // namespace
}  // namespace vllm
