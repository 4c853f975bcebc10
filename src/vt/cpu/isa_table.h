// Picks the table of the instruction set that a kernel runs on.
#pragma once
#include "vt/cpu/row_kernels.h"
#include "vt/kernel_context.h"

namespace vt {

inline const RowKernels& RowKernelsOf(const KernelContext& context) {
  return context.isa >= Isa::kAvx512 ? kRowKernelsAvx512 : kRowKernelsAvx2;
}

// Before any element was looked at.
inline constexpr MaxAt kNoMax = {.value = -__builtin_inff(), .index = -2};

// Takes in the maximum of other elements of the same row, in any order of parts.
inline void JoinMax(MaxAt& best, const MaxAt& part) {
  if (best.index == -1 || part.index == kNoMax.index) return;
  if (part.index == -1 || best.index == kNoMax.index || part.value > best.value ||
      (part.value == best.value && part.index < best.index))
    best = part;
}

// Elements that one worker processes in about the time of a barrier: smaller ops stay on the calling worker.
inline constexpr int64_t kSerialElements = 16384;

// Runs f(begin, end) over rows of `row_elements`, on all workers where that pays.
template <class F>
void ForRows(KernelContext& context, int64_t rows, int64_t row_elements, F&& f) {
  if (rows * row_elements <= kSerialElements || context.workers == 1) return f(0, rows);
  context.ParallelFor(rows, 1 + rows / (4 * context.workers), [&](int64_t begin, int64_t end, int) { f(begin, end); });
}

}  // namespace vt
