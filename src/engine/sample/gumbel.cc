// Gumbel-max with exact logarithms only for the few tokens whose cheap upper bound can still win.
#include "engine/sample/gumbel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/sample/lanes.h"
#include "engine/sample/noise_hash.h"
#include "engine/sample/row_passes.h"

namespace vllm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

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

// A bound must reach the best score, rounded so that none which could win is passed over.
float MustReach(double score) { return std::nextafterf(static_cast<float>(score), -kInf); }

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
  const RowPasses& passes = BestRowPasses();
  const int64_t size = static_cast<int64_t>(row.size());
  int64_t i = 0;
  for (;;) {
    i = passes.next_noisy(row.data(), i, size, max, prefix, MustReach(best.score));
    if (i + kNoiseGroup > size) break;
    for (const int64_t end = i + kNoiseGroup; i < end; ++i) best.Offer(row[i], static_cast<int32_t>(i), prefix);
  }
  for (; i < size; ++i) best.Offer(row[i], static_cast<int32_t>(i), prefix);
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
    Uints ids = {};
    Floats values = {};
    for (int j = 0; j < kLanes; ++j) ids[j] = static_cast<uint32_t>(c[j].id), values[j] = c[j].value;
    const Floats bound = (values - candidates.front().value) + NoiseBound(Finish<Uints>(Mix<Uints>(shared, ids)));
    if (Bits(bound >= Fill(MustReach(best.score))) == 0) [[likely]]
      continue;
    for (int j = 0; j < kLanes; ++j) best.Offer(c[j].value, c[j].id, prefix);
  }
  for (const Candidate& candidate : candidates.subspan(i)) best.Offer(candidate.value, candidate.id, prefix);
  return best.id;
}

}  // namespace vllm
