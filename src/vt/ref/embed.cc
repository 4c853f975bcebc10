// Embed, plain: the dequantized row of each id, times scale.
#include <vector>

#include "base/check.h"
#include "quant/format.h"
#include "vt/op_checks.h"
#include "vt/ref/kernels.h"
#include "vt/weight.h"

namespace vt {

void RefEmbed(const OpArgs& args, KernelContext&) {
  const auto& op = std::get<EmbedOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t columns = op.out.shape[1];
  for (int64_t t = 0; t < op.out.shape[0]; ++t) {
    int64_t row = op.ids.as<int32_t>()[t];
    float* out = op.out.as<float>() + t * columns;
    for (const Segment& segment : op.weight->segments) {
      if (row < segment.n) {
        GetFormat(segment.format).dequantize(segment.data + row * segment.row_bytes, columns, out);
        break;
      }
      row -= segment.n;
    }
    for (int64_t c = 0; c < columns; ++c) out[c] *= op.scale;
  }
}

}  // namespace vt
