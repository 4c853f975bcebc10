// MakePlatform: the one switch from a device type to its platform.
#include "vt/cpu/platform.h"
#include "base/result.h"
#include "vt/buffer.h"
#include "vt/opaque/platform.h"

namespace vt {

std::shared_ptr<Platform> MakePlatform(DeviceType type, const PlatformOptions& options) {
  switch (type) {
    case DeviceType::kCpu:
    case DeviceType::kRef:
      return MakeHostPlatform(type, options);
    case DeviceType::kOpaque:
      return MakeOpaquePlatform();
    case DeviceType::kCuda:
    case DeviceType::kVulkan:
      break;
  }
  base::Throw(base::ErrorCode::kUnsupported, "device: '", DeviceName(type), "' is not in this build; use --device cpu");
}

}  // namespace vt
