// GatedAct on the CPU: silu and gelu_tanh as vectors, gelu through the library's erfc (no model of ours is bound by
// it).
#include <cmath>

#include "vt/cpu/isa_table.h"
#include "vt/cpu/kernels.h"
#include "vt/op_checks.h"

namespace vt {
namespace {

void GeluRow(const float* gate, const float* up, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(0.5 * gate[i] * std::erfc(-gate[i] * M_SQRT1_2)) * up[i];
}

}  // namespace

void CpuGatedAct(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<GatedActOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t n = op.out.shape[1];
  const RowKernels& kernels = RowKernelsOf(context);
  ForRows(context, op.out.shape[0], n, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const float* gate = op.x.as<float>() + t * 2 * n;
      float* out = op.out.as<float>() + t * n;
      switch (op.act) {
        case Activation::kSilu:
          kernels.gated_act(RowActivation::kSilu, gate, gate + n, out, n);
          break;
        case Activation::kGeluTanh:
          kernels.gated_act(RowActivation::kGeluTanh, gate, gate + n, out, n);
          break;
        case Activation::kGelu:
          GeluRow(gate, gate + n, out, n);
          break;
      }
    }
  });
}

}  // namespace vt
