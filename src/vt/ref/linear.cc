// Linear, plain: every row of the weight is dequantized and multiplied with every row of x in double precision.
#include <vector>

#include "quant/format.h"
#include "vt/op_checks.h"
#include "vt/ref/kernels.h"
#include "vt/weight.h"

namespace vt {

void RefLinear(const OpArgs& args, KernelContext&) {
  const auto& op = std::get<LinearOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t rows = op.x.shape[0], k = op.x.shape[1], n = op.out.shape[1];
  std::vector<float> weight(static_cast<size_t>(k));
  int64_t column = 0;
  for (const Segment& segment : op.weight->segments) {
    const Format& format = GetFormat(segment.format);
    for (int64_t i = 0; i < segment.n; ++i, ++column) {
      format.dequantize(segment.data + i * segment.row_bytes, k, weight.data());
      for (int64_t r = 0; r < rows; ++r) {
        const float* x = op.x.as<float>() + r * k;
        double sum = op.bias ? op.bias.as<float>()[column] : 0;
        for (int64_t j = 0; j < k; ++j) sum += static_cast<double>(x[j]) * weight[static_cast<size_t>(j)];
        op.out.as<float>()[r * n + column] = static_cast<float>(sum);
      }
    }
  }
}

}  // namespace vt
