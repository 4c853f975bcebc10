// The cpu provider's list of kernels.
#include "vt/cpu/register.h"

#include "vt/cpu/kernels.h"
#include "vt/ops.h"

namespace vt {

void RegisterCpuOps() { RegisterOp({OpId::kGatherRows, DeviceType::kCpu, "cpu", CpuGatherRows}); }

}  // namespace vt
