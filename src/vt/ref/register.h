// The ref provider's list of kernels, for the ref and the opaque device.
#pragma once

namespace vt {

// Registers every plain kernel for DeviceType::kRef and DeviceType::kOpaque, provider "ref". Called once at start-up.
void RegisterRefOps();

}  // namespace vt
