// The cpu provider's linear and embedding kernels, and which weight formats they take.
#pragma once
#include <string>

#include "quant/format.h"
#include "vt/buffer.h"
#include "vt/kernel_context.h"
#include "vt/ops.h"

namespace vt {

// True when the cpu provider multiplies with weights of this format on this machine; otherwise `reason` (may be null)
// names the format and those that have kernels. There is no fallback: plans refuse such a weight.
bool CpuLinearSupports(FormatId format, const PlatformInfo& platform, std::string* reason);

// Which kernels a linear of `rows` rows uses: "f32 few rows", "f32 blocked" or "bf16 blocked".
std::string_view CpuLinearKernelName(int64_t rows, Numerics numerics, Isa isa);

// y[rows, n] = x W^T (+ bias). Weights are read in file layout at any alignment. Exact and invariant numerics: f32
// products of the dequantized weights, every output depends on its row of x and its row of the weight only, bit for
// bit, whatever the number of rows or workers (instruction sets differ in the last bits). Default: the same for up to 8
// rows, and BF16 products with f32 sums above where the machine has them.
void CpuLinear(const OpArgs& args, KernelContext& context);

// x[t] = dequantized row ids[t], times scale.
void CpuEmbed(const OpArgs& args, KernelContext& context);

}  // namespace vt
