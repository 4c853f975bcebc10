// Softcap, plain: cap * tanh(x * scale / cap), or x * scale without a cap.
#include <cmath>

#include "vt/op_checks.h"
#include "vt/ref/kernels.h"

namespace vt {

void RefSoftcap(const OpArgs& args, KernelContext&) {
  const auto& op = std::get<SoftcapOp<Tensor>>(args);
  CheckArgs(op);
  for (int64_t i = 0; i < op.x.elements(); ++i) {
    float& x = op.x.as<float>()[i];
    const double scaled = static_cast<double>(x) * op.scale;
    x = static_cast<float>(op.cap > 0 ? op.cap * std::tanh(scaled / op.cap) : scaled);
  }
}

}  // namespace vt
