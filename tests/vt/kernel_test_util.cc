// Builders for kernel tests: the parts that need no template.
#include "tests/vt/kernel_test_util.h"

#include <algorithm>
#include <cmath>

namespace vt::testing {

std::vector<Isa> TestIsas() {
  std::vector<Isa> isas;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isas.push_back(Isa::kAvx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    isas.push_back(Isa::kAvx512);
  return isas;
}

double MaxRelativeError(std::span<const float> a, std::span<const float> b, double floor) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(static_cast<double>(a[i]) - b[i]) / (std::abs(static_cast<double>(b[i])) + floor);
    if (!(error <= largest)) largest = error;
  }
  return largest;
}

}  // namespace vt::testing
