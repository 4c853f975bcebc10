// Passes over one row of logits, in blocks of four lanes.
#include "engine/sample/row_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "engine/sample/lanes.h"

namespace vllm {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
// Elements per skip test of the selection scans: long enough to pay for the test, short enough to skip most of a row.
constexpr size_t kBlock = 64;

// Higher value first, then lower id.
bool Before(const Candidate& a, const Candidate& b) { return a.value != b.value ? a.value > b.value : a.id < b.id; }

float BlockMax(const float* x) {
  Floats best = Load(x);
  for (size_t i = kLanes; i < kBlock; i += kLanes) best = Max(Load(x + i), best);
  return std::max(std::max(best[0], best[1]), std::max(best[2], best[3]));
}

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

// The k largest in any order, 1 <= k <= row.size(): a running threshold skips most of the row.
std::vector<Candidate> Select(std::span<const float> row, int64_t k) {
  if (k > static_cast<int64_t>(row.size()) / 8) return SelectFromWholeRow(row, k);
  std::vector<Candidate> kept;
  const size_t capacity = static_cast<size_t>(k) * 2 + 128;
  kept.reserve(capacity);
  bool full = false;  // `kept` has held k, and `threshold` is the k-th of those
  float threshold = -kInf;
  const auto offer = [&](size_t i) {
    if (full && row[i] <= threshold) return;  // an equal with a higher id loses the tie
    kept.push_back({row[i], static_cast<int32_t>(i)});
    if (kept.size() < capacity) return;
    KeepFirst(kept, k);
    threshold = kept.back().value;
    full = true;
  };
  size_t i = 0;
  for (; i + kBlock <= row.size(); i += kBlock) {
    if (full && BlockMax(row.data() + i) <= threshold) continue;
    for (size_t j = i; j < i + kBlock; ++j) offer(j);
  }
  for (; i < row.size(); ++i) offer(i);
  KeepFirst(kept, k);
  return kept;
}

}  // namespace

RowMax MaxOf(std::span<const float> row) {
  Floats best[4] = {Fill(-kInf), Fill(-kInf), Fill(-kInf), Fill(-kInf)};
  Ints nan = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + 4 * kLanes <= row.size(); i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) {
      const Floats x = Load(row.data() + i + j * kLanes);
      nan |= x != x;
      best[j] = Max(x, best[j]);
    }
  }
  RowMax result = {-kInf, Any(nan)};
  for (const Floats& lanes : best) {
    for (int lane = 0; lane < kLanes; ++lane) result.value = std::max(result.value, lanes[lane]);
  }
  for (; i < row.size(); ++i) {
    result.has_nan |= row[i] != row[i];
    if (row[i] > result.value) result.value = row[i];
  }
  return result;
}

int32_t FirstIndexOf(std::span<const float> row, float value) {
  size_t i = 0;
  const Floats wanted = Fill(value);
  for (; i + 4 * kLanes <= row.size(); i += 4 * kLanes) {
    const float* x = row.data() + i;
    if (Any((Load(x) == wanted) | (Load(x + 4) == wanted) | (Load(x + 8) == wanted) | (Load(x + 12) == wanted))) break;
  }
  for (; i < row.size(); ++i) {
    if (row[i] == value) return static_cast<int32_t>(i);
  }
  return -1;
}

void ExpOfNegated(std::span<const float> x, float* out) {
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) Store(out + i, ExpNonPositive(-Load(x.data() + i)));
  for (; i < x.size(); ++i) out[i] = ExpNonPositive(Fill(-x[i]))[0];
}

float LogSumExp::LogprobOf(float logit) const {
  if (logit == -kInf) return -kInf;
  if (max == kInf) return logit == kInf ? static_cast<float>(-log_sum) : -kInf;
  return static_cast<float>(static_cast<double>(logit) - max - log_sum);
}

LogSumExp LogSumExpOf(std::span<const float> row, float max) {
  if (max == -kInf) return {max, 0};
  if (max == kInf) return {max, std::log(static_cast<double>(std::count(row.begin(), row.end(), kInf)))};
  double sum = 0;
  size_t i = 0;
  while (i + kLanes <= row.size()) {
    // Short float sums keep the error of a quarter-million additions below that of one.
    const size_t end = std::min(row.size() / kLanes * kLanes, i + 32 * kLanes);
    Floats partial = Fill(0);
    for (; i < end; i += kLanes) partial += ExpNonPositive(Load(row.data() + i) - max);
    sum += static_cast<double>(partial[0]) + partial[1] + partial[2] + partial[3];
  }
  for (; i < row.size(); ++i) sum += ExpNonPositive(Fill(row[i] - max))[0];
  return {max, std::log(sum)};
}

int64_t CountAtLeast(std::span<const float> row, float value) {
  const Floats bound = Fill(value);
  Ints count = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) count -= Load(row.data() + i) >= bound;
  int64_t total = int64_t{count[0]} + count[1] + count[2] + count[3];
  for (; i < row.size(); ++i) total += row[i] >= value;
  return total;
}

std::vector<Candidate> TopK(std::span<const float> row, int64_t k) {
  k = std::clamp<int64_t>(k, 0, static_cast<int64_t>(row.size()));
  if (k == 0) return {};
  std::vector<Candidate> top = Select(row, k);
  std::sort(top.begin(), top.end(), Before);
  return top;
}

float KthLargest(std::span<const float> row, int64_t k) {
  CHECK(k >= 1 && k <= static_cast<int64_t>(row.size()), "rank ", k, " of ", row.size());
  return Select(row, k)[k - 1].value;
}

std::vector<Candidate> CollectAtLeast(std::span<const float> row, float threshold) {
  std::vector<Candidate> out;
  const auto offer = [&](size_t i) {
    if (row[i] >= threshold) out.push_back({row[i], static_cast<int32_t>(i)});
  };
  size_t i = 0;
  for (; i + kBlock <= row.size(); i += kBlock) {
    if (BlockMax(row.data() + i) < threshold) continue;
    for (size_t j = i; j < i + kBlock; ++j) offer(j);
  }
  for (; i < row.size(); ++i) offer(i);
  return out;
}

void Divide(std::span<float> row, float divisor) {
  const Floats by = Fill(divisor);
  size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) Store(row.data() + i, Load(row.data() + i) / by);
  for (; i < row.size(); ++i) row[i] /= divisor;
}

}  // namespace vllm
