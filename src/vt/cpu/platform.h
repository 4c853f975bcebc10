// The platform of host memory: `cpu` with all its workers and best instruction set, `ref` with one worker.
#pragma once
#include <memory>

#include "vt/buffer.h"

namespace vt {

// `type` is kCpu or kRef. Buffers are 64-byte aligned, zero, and take memory only when touched. Its queues run each
// kernel at once in the calling thread and the pool's workers; their events have always passed. Throws base::Exception
// for an instruction set that is not there or threads that cannot be started.
std::shared_ptr<Platform> MakeHostPlatform(DeviceType type, const PlatformOptions& options);

// The buffer that MakeHostPlatform's Allocate returns, for other platforms that keep bytes in host memory.
Buffer AllocateHost(DeviceId device, size_t bytes);

}  // namespace vt
