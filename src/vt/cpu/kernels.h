// The cpu provider's kernels: parallel over KernelContext's workers, vector code per instruction set behind each.
#pragma once
#include "vt/kernel_context.h"
#include "vt/ops.h"

namespace vt {

// Each takes the OpArgs alternative of its name and CHECKs it (vt/op_checks.h) before any work. Operands are host
// memory.
void CpuAddNorm(const OpArgs& args, KernelContext& context);
void CpuQkNormRopeCacheWrite(const OpArgs& args, KernelContext& context);
void CpuPagedAttention(const OpArgs& args, KernelContext& context);
void CpuGatedAct(const OpArgs& args, KernelContext& context);
void CpuGatherRows(const OpArgs& args, KernelContext& context);
void CpuSoftcap(const OpArgs& args, KernelContext& context);
void CpuRowMax(const OpArgs& args, KernelContext& context);
void CpuAttention(const OpArgs& args, KernelContext& context);

}  // namespace vt
