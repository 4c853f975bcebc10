// GatherRows, plain: copies of chosen rows.
#include <algorithm>

#include "vt/op_checks.h"
#include "vt/ref/kernels.h"

namespace vt {

void RefGatherRows(const OpArgs& args, KernelContext&) {
  const auto& op = std::get<GatherRowsOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t columns = op.x.shape[1];
  for (int64_t r = 0; r < op.indices.shape[0]; ++r)
    std::copy_n(op.x.as<float>() + op.indices.as<int32_t>()[r] * columns, columns, op.out.as<float>() + r * columns);
}

}  // namespace vt
