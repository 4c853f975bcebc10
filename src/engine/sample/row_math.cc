// Questions about one row of logits, answered by the passes of this machine.
#include "engine/sample/row_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "engine/sample/row_passes.h"

namespace vllm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

int64_t Size(std::span<const float> row) { return static_cast<int64_t>(row.size()); }

// Higher value first, then lower id.
bool Before(const Candidate& a, const Candidate& b) { return a.value != b.value ? a.value > b.value : a.id < b.id; }

// Keeps the first k in the order of Before, the k-th at its place and the others in any order.
void KeepFirst(std::vector<Candidate>& candidates, int64_t k) {
  std::nth_element(candidates.begin(), candidates.begin() + (k - 1), candidates.end(), Before);
  candidates.resize(k);
}

std::vector<Candidate> SelectFromWholeRow(std::span<const float> row, int64_t k) {
  std::vector<Candidate> all(row.size());
  for (size_t i = 0; i < row.size(); ++i) all[i] = {row[i], static_cast<int32_t>(i)};
  KeepFirst(all, k);
  return all;
}

// The k largest in any order but for the k-th, which is last; 1 <= k <= row.size(). A running threshold skips most of
// the row.
std::vector<Candidate> Select(std::span<const float> row, int64_t k) {
  const int64_t size = Size(row);
  if (k > size / 8) return SelectFromWholeRow(row, k);
  const RowPasses& passes = BestRowPasses();
  std::vector<Candidate> kept;
  const size_t capacity = static_cast<size_t>(k) * 2 + 128;
  kept.reserve(capacity);
  int64_t i = 0;
  for (; kept.size() < capacity && i < size; ++i) kept.push_back({row[i], static_cast<int32_t>(i)});
  KeepFirst(kept, k);
  // From here an equal of the k-th loses the tie: its id is higher.
  float threshold = kept.back().value;
  while ((i = passes.next_above(row.data(), i, size, threshold)) < size) {
    kept.push_back({row[i], static_cast<int32_t>(i)});
    ++i;
    if (kept.size() < capacity) continue;
    KeepFirst(kept, k);
    threshold = kept.back().value;
  }
  KeepFirst(kept, k);
  return kept;
}

}  // namespace

RowMax MaxOf(std::span<const float> row) {
  RowMax max;
  max.value = BestRowPasses().max_of(row.data(), Size(row), &max.has_nan);
  return max;
}

int32_t FirstIndexOf(std::span<const float> row, float value) {
  int64_t i = -1;
  do {
    i = BestRowPasses().next_at_least(row.data(), i + 1, Size(row), value);
  } while (i < Size(row) && row[i] != value);
  return i < Size(row) ? static_cast<int32_t>(i) : -1;
}

float LogSumExp::LogprobOf(float logit) const {
  if (logit == -kInf) return -kInf;
  if (max == kInf) return logit == kInf ? static_cast<float>(-log_sum) : -kInf;
  return static_cast<float>(static_cast<double>(logit) - max - log_sum);
}

LogSumExp LogSumExpOf(std::span<const float> row, float max) {
  if (max == -kInf) return {max, 0};
  if (max == kInf) return {max, std::log(static_cast<double>(std::count(row.begin(), row.end(), kInf)))};
  double near = 0;
  return {max, std::log(BestRowPasses().exp_sum(row.data(), Size(row), max, 0, &near))};
}

int64_t CountAtLeast(std::span<const float> row, float value) {
  return BestRowPasses().count_at_least(row.data(), Size(row), value);
}

std::vector<Candidate> TopK(std::span<const float> row, int64_t k) {
  k = std::clamp<int64_t>(k, 0, Size(row));
  if (k == 0) return {};
  std::vector<Candidate> top = Select(row, k);
  std::sort(top.begin(), top.end(), Before);
  return top;
}

float KthLargest(std::span<const float> row, int64_t k) {
  CHECK(k >= 1 && k <= Size(row), "rank ", k, " of ", row.size());
  return Select(row, k)[k - 1].value;
}

std::vector<Candidate> CollectAtLeast(std::span<const float> row, float threshold) {
  std::vector<Candidate> out;
  constexpr int64_t kChunk = 1024;
  int32_t places[kChunk];
  for (int64_t begin = 0; begin < Size(row); begin += kChunk) {
    const int64_t length = std::min(kChunk, Size(row) - begin);
    const int64_t count = BestRowPasses().places_at_least(row.data() + begin, length, threshold, places);
    for (int64_t i = 0; i < count; ++i)
      out.push_back({row[begin + places[i]], static_cast<int32_t>(begin + places[i])});
  }
  return out;
}

void Divide(std::span<float> row, float divisor) { BestRowPasses().divide(row.data(), Size(row), divisor); }

}  // namespace vllm
