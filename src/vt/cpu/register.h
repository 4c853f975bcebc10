// The cpu provider's list of kernels.
#pragma once

namespace vt {

// Registers every cpu kernel for DeviceType::kCpu, provider "cpu". Called once at start-up.
void RegisterCpuOps();

}  // namespace vt
