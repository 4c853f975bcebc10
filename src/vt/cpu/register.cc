// The cpu provider's list of kernels.
#include "vt/cpu/register.h"

#include "vt/cpu/kernels.h"
#include "vt/cpu/linear.h"
#include "vt/ops.h"

namespace vt {

void RegisterCpuOps() {
  RegisterOp({OpId::kEmbed, DeviceType::kCpu, "cpu", CpuEmbed});
  RegisterOp({OpId::kLinear, DeviceType::kCpu, "cpu", CpuLinear});
  RegisterOp({OpId::kLinearRowMax, DeviceType::kCpu, "cpu", CpuLinearRowMax});
  RegisterOp({OpId::kAddNorm, DeviceType::kCpu, "cpu", CpuAddNorm});
  RegisterOp({OpId::kQkNormRopeCacheWrite, DeviceType::kCpu, "cpu", CpuQkNormRopeCacheWrite});
  RegisterOp({OpId::kPagedAttention, DeviceType::kCpu, "cpu", CpuPagedAttention});
  RegisterOp({OpId::kGatedAct, DeviceType::kCpu, "cpu", CpuGatedAct});
  RegisterOp({OpId::kGatherRows, DeviceType::kCpu, "cpu", CpuGatherRows});
  RegisterOp({OpId::kSoftcap, DeviceType::kCpu, "cpu", CpuSoftcap});
  RegisterOp({OpId::kRowMax, DeviceType::kCpu, "cpu", CpuRowMax});
  RegisterOp({OpId::kAttention, DeviceType::kCpu, "cpu", CpuAttention});
}

}  // namespace vt
