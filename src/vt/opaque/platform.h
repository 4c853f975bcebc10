// The opaque test device: memory that the host cannot touch and a queue that runs nothing before it is waited for.
#pragma once
#include <memory>

#include "vt/buffer.h"

namespace vt {

// The device runs the plain kernels (provider "ref"). It finds, without a GPU, what a GPU would:
// - Tensor.data points into a reserved range without access; any dereference by the host faults. The bytes lie at a
// fixed
//   distance. Addresses are never used twice, and a guard page follows every buffer.
// - The queue only records. Commands run in Wait, in order, and host sources are read only then: a missing wait and a
//   staging buffer that is reused too early show as wrong results. Commands that nobody waits for never run.
// A tensor that lies outside a live buffer, or claims another device, is an InternalError from Launch, CopyAsync or
// Wait; a kernel's own InternalError comes from Wait, which may be called again for the commands after it. Throws
// base::Exception kOutOfMemory when the address range cannot be reserved.
std::shared_ptr<Platform> MakeOpaquePlatform();

}  // namespace vt
