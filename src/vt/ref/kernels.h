// The plain kernels: one obvious function per op, serial, double precision inside. They are the oracle of every
// provider.
#pragma once
#include "vt/kernel_context.h"
#include "vt/ops.h"

namespace vt {

// Each takes the OpArgs alternative of its name and CHECKs it (vt/op_checks.h). Operands must be readable by the
// caller.
void RefEmbed(const OpArgs& args, KernelContext& context);
void RefAddNorm(const OpArgs& args, KernelContext& context);
void RefLinear(const OpArgs& args, KernelContext& context);
void RefQkNormRopeCacheWrite(const OpArgs& args, KernelContext& context);
void RefPagedAttention(const OpArgs& args, KernelContext& context);
void RefGatedAct(const OpArgs& args, KernelContext& context);
void RefGatherRows(const OpArgs& args, KernelContext& context);
void RefSoftcap(const OpArgs& args, KernelContext& context);
void RefRowMax(const OpArgs& args, KernelContext& context);
void RefAttention(const OpArgs& args, KernelContext& context);

}  // namespace vt
