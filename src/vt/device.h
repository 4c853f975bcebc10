// Devices: numbers and names. Number 0 is the CPU and 1 is CUDA in every message and statistic.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace vt {

enum class DeviceType : int8_t {
  kCpu = 0,
  kCuda = 1,
  kVulkan = 2,
  kRef = 14,     // plain kernels on host memory: the oracle of every other device
  kOpaque = 15,  // plain kernels on memory that the host cannot touch: finds missing copies and syncs without a GPU
};

struct DeviceId {
  DeviceType type = DeviceType::kCpu;
  int8_t index = 0;
  friend bool operator==(DeviceId, DeviceId) = default;
};

std::string_view DeviceName(DeviceType type);
// "cpu", "ref", "opaque"; nullopt for anything else.
std::optional<DeviceType> ParseDevice(std::string_view name);

}  // namespace vt
