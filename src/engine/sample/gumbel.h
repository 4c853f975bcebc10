// Counter-based Gumbel-max sampling: the noise of a token is a hash of (seed, position, token id) and of nothing else.
#pragma once
#include <cstdint>
#include <span>

#include "engine/sample/row_math.h"

namespace vllm {

// Where a draw stands in its sequence's random stream.
struct NoiseKey {
  uint64_t seed = 0;
  int64_t position = 0;  // of the last token before the sampled one, as vLLM counts
};

// Murmur3 of (seed, position, token) as vLLM's V2 sampler draws it: 32 uniform bits.
uint32_t NoiseBits(const NoiseKey& key, uint32_t token_id);
// -log(-log(1 - u)) with u = (bits + 0.5) / 2^32.
double GumbelOf(uint32_t bits);

// argmax of logit + noise; elements of -inf never win. -1 when no element is finite. `max` is the row's maximum.
int32_t GumbelArgmax(std::span<const float> row, float max, const NoiseKey& key);
int32_t GumbelArgmax(std::span<const Candidate> candidates, const NoiseKey& key);

}  // namespace vllm
