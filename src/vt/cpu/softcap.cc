// Softcap on the CPU: the whole tensor as one run of floats, split over the workers in pieces.
#include <algorithm>

#include "vt/cpu/isa_table.h"
#include "vt/cpu/kernels.h"
#include "vt/op_checks.h"

namespace vt {

void CpuSoftcap(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<SoftcapOp<Tensor>>(args);
  CheckArgs(op);
  constexpr int64_t kPiece = 4096;
  const int64_t elements = op.x.elements(), pieces = (elements + kPiece - 1) / kPiece;
  const RowKernels& kernels = RowKernelsOf(context);
  ForRows(context, pieces, kPiece, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kPiece, last = std::min(end * kPiece, elements);
    kernels.softcap(op.x.as<float>() + first, last - first, op.scale, op.cap);
  });
}

}  // namespace vt
