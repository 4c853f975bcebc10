// Selection without sorting the vocabulary: thresholds first, then a quickselect on probability mass over what is left.
#include "engine/sample/truncate.h"

#include <algorithm>
#include <cmath>

namespace vllm {
namespace {

// Among equals the lower id first. The reference leaves it to an unstable sort which of equals at the edge of top_p stay.
bool Before(const Candidate& a, const Candidate& b) { return a.value != b.value ? a.value > b.value : a.id < b.id; }

double MassOf(const Candidate& candidate, float max) { return std::exp(static_cast<double>(candidate.value) - max); }

std::vector<Candidate> TopKOfRow(std::span<const float> row, int64_t k) {
  const std::vector<Candidate> top = TopK(row, k);
  return CollectAtLeast(row, top.back().value);
}

void KeepTopK(std::vector<Candidate>& candidates, size_t k) {
  if (k >= candidates.size()) return;
  std::nth_element(candidates.begin(), candidates.begin() + (k - 1), candidates.end(), Before);
  const float threshold = candidates[k - 1].value;
  std::erase_if(candidates, [&](const Candidate& c) { return c.value < threshold; });
}

// Keeps the shortest head, by descending logit, of which the mass before its last token is below p * total.
void KeepTopP(std::vector<Candidate>& candidates, float max, double p, double total) {
  const double wanted = p * total;
  size_t low = 0, high = candidates.size();  // the cut lies in (low, high]
  double before = 0;                         // mass of [0, low)
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    std::nth_element(candidates.begin() + low, candidates.begin() + middle, candidates.begin() + high, Before);
    double upper = 0;
    for (size_t i = low; i < middle; ++i) upper += MassOf(candidates[i], max);
    if (before + upper < wanted) {
      before += upper;
      low = middle;
    } else {
      high = middle;
    }
  }
  candidates.resize(high);
}

}  // namespace

std::vector<Candidate> Truncate(std::span<const float> row, float max, const Truncation& truncation) {
  const bool use_top_k = truncation.top_k > 0 && static_cast<size_t>(truncation.top_k) < row.size();
  std::vector<Candidate> candidates;
  bool collected = false;
  if (truncation.min_p != 0) {
    candidates = CollectAtLeast(row, max + std::log(truncation.min_p));
    collected = true;
  }
  if (use_top_k) {
    if (collected) {
      KeepTopK(candidates, static_cast<size_t>(truncation.top_k));
    } else {
      candidates = TopKOfRow(row, truncation.top_k);
      collected = true;
    }
  }
  if (truncation.top_p == 1) return candidates;
  const double p = truncation.top_p;
  if (collected) {
    double total = 0;
    for (const Candidate& candidate : candidates) total += MassOf(candidate, max);
    KeepTopP(candidates, max, p, total);
    return candidates;
  }
  // Tokens below (1 - p) / vocabulary have less than 1 - p together, so none of them can stay.
  const double total = std::exp(LogSumExpOf(row, max).log_sum);
  const double floor = (1 - p) / static_cast<double>(row.size()) * total * 0.99;
  candidates = CollectAtLeast(row, std::min(max, static_cast<float>(max + std::log(floor))));
  KeepTopP(candidates, max, p, total);
  return candidates;
}

}  // namespace vllm
