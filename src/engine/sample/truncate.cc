// Selection without sorting the vocabulary: thresholds first, then a quickselect on probability mass over what is left.
#include "engine/sample/truncate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/sample/row_passes.h"

namespace vllm {
namespace {

// Among equals the lower id first. The reference leaves it to an unstable sort which of equals at the edge of top_p
// stay.
bool Before(const Candidate& a, const Candidate& b) { return a.value != b.value ? a.value > b.value : a.id < b.id; }

double MassOf(const Candidate& candidate, float max) { return std::exp(static_cast<double>(candidate.value) - max); }

void KeepTopK(std::vector<Candidate>& candidates, size_t k) {
  if (k >= candidates.size()) return;
  std::nth_element(candidates.begin(), candidates.begin() + (k - 1), candidates.end(), Before);
  const float threshold = candidates[k - 1].value;
  std::erase_if(candidates, [&](const Candidate& c) { return c.value < threshold; });
}

// Keeps the shortest head, by descending logit, of which the mass before its last token is below `wanted`; at least
// one.
void KeepMass(std::vector<Candidate>& candidates, float max, double wanted) {
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

// Probability mass by distance from the maximum, in steps fine enough that one of them holds few tokens.
class MassHistogram {
 public:
  MassHistogram(std::span<const float> logits, float max) : max_(max), mass_(kBins, 0.0) {
    float masses[kChunk];
    int32_t bins[kChunk];
    for (size_t begin = 0; begin < logits.size(); begin += kChunk) {
      const size_t count = std::min(kChunk, logits.size() - begin);
      BestRowPasses().masses(logits.data() + begin, static_cast<int64_t>(count), max, kBinsPerNat, kBins - 1, masses,
                             bins);
      for (size_t i = 0; i < count; ++i) mass_[bins[i]] += masses[i];
    }
  }
  // Falls with the logit, and never rises: bins are ranges of logits.
  size_t BinOf(float logit) const {
    return static_cast<size_t>(std::min((max_ - logit) * kBinsPerNat, static_cast<float>(kBins - 1)));
  }
  // A bound below every logit of bins 0 .. `bin`, whatever the rounding in BinOf.
  float FloorOf(size_t bin) const {
    if (bin + 1 == kBins) return -std::numeric_limits<float>::infinity();
    const float distance = static_cast<float>(bin + 1) / kBinsPerNat;
    return max_ - distance - 1e-6f * (std::fabs(max_) + distance);
  }
  // The bin in which the mass from the top reaches `wanted`, and the mass of those above it.
  struct Edge {
    size_t bin = 0;
    double before = 0;
  };
  Edge EdgeOf(double wanted) const {
    Edge edge;
    while (edge.before + mass_[edge.bin] < wanted && edge.bin + 1 < kBins) edge.before += mass_[edge.bin++];
    return edge;
  }

 private:
  static constexpr size_t kBins = 2048, kChunk = 256;
  static constexpr float kBinsPerNat = 64;
  float max_;
  std::vector<double> mass_;
};

std::vector<Candidate> TopPOfRow(std::span<const float> row, float max, double p) {
  // Tokens this near the likeliest are few and nearly always hold enough of the mass; then no others are sorted into
  // bins.
  constexpr float kNear = 8;
  double near = 0;
  const double wanted = p * BestRowPasses().exp_sum(row.data(), static_cast<int64_t>(row.size()), max, kNear, &near);
  std::vector<Candidate> candidates;
  std::vector<float> logits;
  const bool is_near = near >= wanted;
  if (is_near) {
    candidates = CollectAtLeast(row, max - kNear - 1e-6f * (std::fabs(max) + kNear));
    for (const Candidate& candidate : candidates) logits.push_back(candidate.value);
  }
  const MassHistogram histogram(is_near ? std::span<const float>(logits) : row, max);
  const MassHistogram::Edge edge = histogram.EdgeOf(wanted);
  if (!is_near) candidates = CollectAtLeast(row, histogram.FloorOf(edge.bin));
  std::vector<Candidate> kept, at_edge;
  for (const Candidate& candidate : candidates) {
    const size_t bin = histogram.BinOf(candidate.value);
    if (bin <= edge.bin) (bin < edge.bin ? kept : at_edge).push_back(candidate);
  }
  KeepMass(at_edge, max, wanted - edge.before);
  kept.insert(kept.end(), at_edge.begin(), at_edge.end());
  return kept;
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
      candidates = CollectAtLeast(row, KthLargest(row, truncation.top_k));
      collected = true;
    }
  }
  if (truncation.top_p == 1) return candidates;
  const double p = truncation.top_p;
  if (collected) {
    double total = 0;
    for (const Candidate& candidate : candidates) total += MassOf(candidate, max);
    KeepMass(candidates, max, p * total);
    return candidates;
  }
  return TopPOfRow(row, max, p);
}

}  // namespace vllm
