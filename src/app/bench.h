// The arithmetic of vllm bench.
#pragma once
#include <vector>

namespace vllm {

// numpy's linear percentile; `percent` in 0 .. 100, at least one value.
double Percentile(std::vector<double> values, double percent);

}  // namespace vllm
