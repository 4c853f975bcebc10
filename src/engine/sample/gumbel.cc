// Gumbel-max with exact logarithms only for the few tokens whose cheap upper bound can still win.
#include "engine/sample/gumbel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/sample/lanes.h"

namespace vllm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kLn2 = 0.69314718f;

template <class Word>
Word Rotate(Word value, int by) {
  return (value << by) | (value >> (32 - by));
}

template <class Word>
Word Mix(Word hash, Word key) {
  key = Rotate<Word>(key * 0xCC9E2D51u, 15) * 0x1B873593u;
  return Rotate<Word>(hash ^ key, 13) * 5u + 0xE6546B64u;
}

template <class Word>
Word Finish(Word hash) {
  hash ^= 16u;  // bytes hashed
  hash = (hash ^ (hash >> 16)) * 0x85EBCA6Bu;
  hash = (hash ^ (hash >> 13)) * 0xC2B2AE35u;
  return hash ^ (hash >> 16);
}

// The part of the hash that all tokens of a row share.
uint32_t Prefix(const NoiseKey& key) {
  uint32_t hash = Mix<uint32_t>(0, static_cast<uint32_t>(key.seed));
  hash = Mix<uint32_t>(hash, static_cast<uint32_t>(key.seed >> 32));
  return Mix<uint32_t>(hash, static_cast<uint32_t>(key.position));
}

uint32_t BitsAfter(uint32_t prefix, uint32_t token_id) { return Finish<uint32_t>(Mix<uint32_t>(prefix, token_id)); }

struct Best {
  double base = 0;  // the row's maximum: scores are relative to it, so that large logits lose no digits
  double score = -std::numeric_limits<double>::infinity();
  int32_t id = -1;
  void Offer(float logit, int32_t token_id, uint32_t prefix) {
    if (logit == -kInf) return;
    const double candidate = logit - base + GumbelOf(BitsAfter(prefix, static_cast<uint32_t>(token_id)));
    if (candidate > score) score = candidate, id = token_id;
  }
};

// An upper bound of the noise, a little too large (rounding included): -log(-log(1-u)) <= -log(u), and log2(u) is at
// least its chord, read off the float's bits.
Floats NoiseBound(Uints bits) {
  // Both halves convert exactly; the sum is rounded, hence the slack at the end.
  const Floats high = __builtin_convertvector(BitCast<Ints>(bits >> 16), Floats);
  const Floats low = __builtin_convertvector(BitCast<Ints>(bits & 0xFFFFu), Floats);
  const Floats u = high * 1.52587890625e-05f + (low + 0.5f) * 2.3283064365386963e-10f;
  const Floats log2_chord = __builtin_convertvector(BitCast<Ints>(u) - 0x3F800000, Floats) * 1.1920929e-07f;
  return log2_chord * -kLn2 + 1e-4f;
}

}  // namespace

uint32_t NoiseBits(const NoiseKey& key, uint32_t token_id) { return BitsAfter(Prefix(key), token_id); }

double GumbelOf(uint32_t bits) {
  const double u = (bits + 0.5) * 0x1p-32;
  return -std::log(-std::log1p(-u));
}

int32_t GumbelArgmax(std::span<const float> row, float max, const NoiseKey& key) {
  const uint32_t prefix = Prefix(key);
  Best best = {max};
  const int32_t likeliest = FirstIndexOf(row, max);
  if (likeliest < 0) return -1;
  best.Offer(max, likeliest, prefix);
  const Uints shared = FillU(prefix);
  size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    const uint32_t first = static_cast<uint32_t>(i);
    const Uints bits = Finish<Uints>(Mix<Uints>(shared, Uints{first, first + 1, first + 2, first + 3}));
    const Floats bound = (Load(row.data() + i) - max) + NoiseBound(bits);
    const float must_reach = std::nextafterf(static_cast<float>(best.score), -kInf);
    if (!Any(bound >= Fill(must_reach))) [[likely]]
      continue;
    for (size_t j = i; j < i + kLanes; ++j) best.Offer(row[j], static_cast<int32_t>(j), prefix);
  }
  for (; i < row.size(); ++i) best.Offer(row[i], static_cast<int32_t>(i), prefix);
  return best.id;
}

int32_t GumbelArgmax(std::span<const Candidate> candidates, const NoiseKey& key) {
  const uint32_t prefix = Prefix(key);
  if (candidates.empty()) return -1;
  Best best = {candidates.front().value};
  size_t i = 0;
  const Uints shared = FillU(prefix);
  for (; i + kLanes <= candidates.size(); i += kLanes) {
    const Candidate* c = &candidates[i];
    const Uints ids = {static_cast<uint32_t>(c[0].id), static_cast<uint32_t>(c[1].id), static_cast<uint32_t>(c[2].id),
                       static_cast<uint32_t>(c[3].id)};
    const Floats values = Floats{c[0].value, c[1].value, c[2].value, c[3].value} - candidates.front().value;
    const Floats bound = values + NoiseBound(Finish<Uints>(Mix<Uints>(shared, ids)));
    const float must_reach = std::nextafterf(static_cast<float>(best.score), -kInf);
    if (!Any(bound >= Fill(must_reach))) [[likely]]
      continue;
    for (int j = 0; j < kLanes; ++j) best.Offer(c[j].value, c[j].id, prefix);
  }
  for (const Candidate& candidate : candidates.subspan(i)) best.Offer(candidate.value, candidate.id, prefix);
  return best.id;
}

}  // namespace vllm
