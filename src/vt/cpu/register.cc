// The cpu provider's list of kernels.
#include "vt/cpu/register.h"

#include "vt/cpu/kernels.h"
#include "vt/ops.h"

namespace vt {

void RegisterCpuOps() {
  RegisterOp({OpId::kAddNorm, DeviceType::kCpu, "cpu", CpuAddNorm});
  RegisterOp({OpId::kQkNormRopeCacheWrite, DeviceType::kCpu, "cpu", CpuQkNormRopeCacheWrite});
  RegisterOp({OpId::kGatedAct, DeviceType::kCpu, "cpu", CpuGatedAct});
  RegisterOp({OpId::kGatherRows, DeviceType::kCpu, "cpu", CpuGatherRows});
  RegisterOp({OpId::kSoftcap, DeviceType::kCpu, "cpu", CpuSoftcap});
}

}  // namespace vt
