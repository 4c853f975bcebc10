// RowMax on the CPU: rows cut into column ranges for all workers, whose maxima are then joined.
#include <algorithm>

#include "vt/cpu/isa_table.h"
#include "vt/cpu/kernels.h"
#include "vt/op_checks.h"

namespace vt {
namespace {

// Columns of a range: enough to outweigh taking it, few enough that one row occupies several workers.
constexpr int64_t kLeastColumns = 4096, kMostColumns = 32768;

}  // namespace

void CpuRowMax(const OpArgs& args, KernelContext& context) {
  const auto& op = std::get<RowMaxOp<Tensor>>(args);
  CheckArgs(op);
  const int64_t rows = op.x.shape[0], columns = op.x.shape[1];
  const int64_t width = std::clamp(rows * columns / (8 * context.workers), kLeastColumns, kMostColumns);
  const int64_t row_pieces = (columns + width - 1) / width, pieces = rows * row_pieces;
  MaxAt* const parts = reinterpret_cast<MaxAt*>(context.Scratch(0, static_cast<size_t>(pieces) * sizeof(MaxAt)).data());
  const RowKernels& kernels = RowKernelsOf(context);
  ForRows(context, pieces, std::min(width, columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / row_pieces, first = i % row_pieces * width;
      parts[i] = kernels.row_max(op.x.as<float>() + row * columns + first, std::min(width, columns - first));
      if (parts[i].index >= 0) parts[i].index += static_cast<int32_t>(first);
    }
  });
  for (int64_t r = 0; r < rows; ++r) {
    MaxAt best = kNoMax;
    for (int64_t i = 0; i < row_pieces; ++i) JoinMax(best, parts[r * row_pieces + i]);
    op.max.as<float>()[r] = best.value;
    op.index.as<int32_t>()[r] = best.index;
  }
}

}  // namespace vt
