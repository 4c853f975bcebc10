// GatedAct, plain: act(gate) * up.
#include <cmath>

#include "vt/op_checks.h"
#include "vt/ref/kernels.h"

namespace vt {
namespace {

double Activate(Activation act, double x) {
  switch (act) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    // 0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u)), which keeps its precision where tanh is near -1.
    case Activation::kGeluTanh:
      return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
  }
  return x;
}

}  // namespace

void RefGatedAct(const OpArgs& args, KernelContext&) {
  const auto& op = std::get<GatedActOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t n = op.out.shape[1];
  for (int64_t t = 0; t < op.out.shape[0]; ++t) {
    const float* gate = op.x.as<float>() + t * 2 * n;
    for (int64_t i = 0; i < n; ++i)
      op.out.as<float>()[t * n + i] = static_cast<float>(Activate(op.act, gate[i]) * gate[n + i]);
  }
}

}  // namespace vt
