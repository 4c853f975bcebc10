// The arithmetic of vllm perplexity: llama.cpp's protocol over log-probabilities.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace vllm {

// Sums over the measured tokens.
struct PerplexitySum {
  double nll = 0, nll_squared = 0;
  int64_t count = 0;

  void Add(double logprob);
  double perplexity() const;
  // Standard error of the perplexity; 0 for fewer than two tokens.
  double error() const;
};

// Chunks of `window` tokens: the text is cut into whole chunks, the rest is dropped; a first token `bos` (when not
// negative) replaces each chunk's first. The second half of a chunk is measured.
std::vector<std::vector<int32_t>> PerplexityChunks(std::span<const int32_t> tokens, int64_t window, int32_t bos);

}  // namespace vllm
