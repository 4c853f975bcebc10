// RowMax, plain: each row's largest element and the lowest column that holds it.
#include "vt/op_checks.h"
#include "vt/ref/kernels.h"

namespace vt {

void RefRowMax(const OpArgs& args, KernelContext&) {
  const auto& op = std::get<RowMaxOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t rows = op.x.shape[0], columns = op.x.shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = op.x.as<float>() + r * columns;
    float max = x[0];
    int32_t index = 0;
    for (int64_t c = 0; c < columns; ++c) {
      if (x[c] != x[c]) {
        max = x[c], index = -1;
        break;
      }
      if (x[c] > max) max = x[c], index = static_cast<int32_t>(c);
    }
    op.max.as<float>()[r] = max;
    op.index.as<int32_t>()[r] = index;
  }
}

}  // namespace vt
