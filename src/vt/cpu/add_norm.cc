// AddNorm on the CPU: residual add and both norms in one pass over each row; rows are split over the workers.
#include "vt/cpu/isa_table.h"
#include "vt/cpu/kernels.h"
#include "vt/op_checks.h"

namespace vt {

void CpuAddNorm(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<AddNormOp<Tensor>>(args);
  CheckArgs(op);
  const AddNormRows rows{.residual = op.residual.as<float>(),
                         .branch = op.branch.as<float>(),
                         .branch_weight = op.branch_weight.as<float>(),
                         .weight = op.weight.as<float>(),
                         .out = op.out.as<float>(),
                         .columns = op.residual.shape[1],
                         .branch_one_plus = op.branch_norm == NormKind::kRmsOnePlus,
                         .one_plus = op.norm == NormKind::kRmsOnePlus,
                         .branch_eps = op.branch_eps,
                         .eps = op.eps,
                         .scale = op.scale};
  const RowKernels& kernels = RowKernelsOf(context);
  ForRows(context, op.residual.shape[0], rows.columns,
          [&](int64_t begin, int64_t end) { kernels.add_norm(rows, begin, end); });
}

}  // namespace vt
