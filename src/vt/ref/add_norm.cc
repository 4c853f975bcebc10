// AddNorm, plain: residual += scale * norm_b(branch); out = norm_a(residual).
#include <cmath>

#include "vt/op_checks.h"
#include "vt/ref/kernels.h"

namespace vt {
namespace {

// 1 / sqrt(mean(x^2) + eps) over a row.
double InverseRms(const float* x, int64_t columns, float eps) {
  double sum = 0;
  for (int64_t c = 0; c < columns; ++c) sum += static_cast<double>(x[c]) * x[c];
  return 1 / std::sqrt(sum / static_cast<double>(columns) + eps);
}

double Gain(NormKind kind, float weight) { return kind == NormKind::kRmsOnePlus ? 1.0 + weight : weight; }

}  // namespace

void RefAddNorm(const OpArgs& args, KernelContext&) {
  const auto& op = std::get<AddNormOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t columns = op.residual.shape[1];
  for (int64_t r = 0; r < op.residual.shape[0]; ++r) {
    float* residual = op.residual.as<float>() + r * columns;
    if (op.branch) {
      const float* branch = op.branch.as<float>() + r * columns;
      const double inverse = op.branch_weight ? InverseRms(branch, columns, op.branch_eps) : 1;
      for (int64_t c = 0; c < columns; ++c) {
        const double gain = op.branch_weight ? Gain(op.branch_norm, op.branch_weight.as<float>()[c]) : 1;
        residual[c] = static_cast<float>(residual[c] + op.scale * (branch[c] * inverse * gain));
      }
    }
    if (!op.out) continue;
    float* out = op.out.as<float>() + r * columns;
    const double inverse = op.weight ? InverseRms(residual, columns, op.eps) : 1;
    for (int64_t c = 0; c < columns; ++c)
      out[c] = static_cast<float>(residual[c] * inverse * (op.weight ? Gain(op.norm, op.weight.as<float>()[c]) : 1));
  }
}

}  // namespace vt
