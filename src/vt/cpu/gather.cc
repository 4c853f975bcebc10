// GatherRows on the CPU: each row is one copy, rows are split over the workers once they outweigh a barrier.
#include <cstring>

#include "vt/cpu/isa_table.h"
#include "vt/cpu/kernels.h"
#include "vt/op_checks.h"

namespace vt {

void CpuGatherRows(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<GatherRowsOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t columns = op.x.shape[1], rows = op.indices.shape[0];
  ForRows(context, rows, columns, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      std::memcpy(op.out.as<float>() + r * columns, op.x.as<float>() + op.indices.as<int32_t>()[r] * columns,
                  static_cast<size_t>(columns) * sizeof(float));
  });
}

}  // namespace vt
