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

// Which kernels a linear of `rows` rows and weights of a supported format uses: "int16 few rows", "int16 panels",
// "int8 few rows", "int8 panels", "amx bf16", "bf16" or "f32".
std::string_view CpuLinearKernelName(FormatId format, int64_t rows, Numerics numerics, Isa isa);

// y[rows, n] = x W^T (+ bias), weights in R16. Every output depends on its row of x and of the weight only, bit for
// bit, whatever the number of rows or workers, but in default numerics where they round to BF16.
//   exact      f32 products of the dequantized weights, on every instruction set in its own order
//   invariant  integer formats: x rounded to 16 bits with a scale for every 32 (two planes of 8 bits), integer sums
//              over a group of weights, f32 sums over groups: the same bits on every instruction set. Float formats:
//              exact
//   default    as invariant, but sums in f32 of x and weights rounded to BF16 (each off by 2^-9 at most): more than
//              eight rows times integer formats with AMX, more than four times BF16 weights with AVX-512 BF16 or AMX.
//              F32 and F16 weights hold more than BF16 does and stay exact
//   fast       as default, but x rounded to 8 bits where integer kernels multiply it; without VNNI not for formats
//              with codes of 8 bits (Q8_0, IQ4_NL, IQ4_XS), whose products of bytes do not add up in 16 bits
void CpuLinear(const OpArgs& args, KernelContext& context);

// The same, and the maxima of the output's rows, found piece by piece.
void CpuLinearRowMax(const OpArgs& args, KernelContext& context);

// x[t] = dequantized row ids[t], times scale; weights in R16 or as the file stores them.
void CpuEmbed(const OpArgs& args, KernelContext& context);

}  // namespace vt
