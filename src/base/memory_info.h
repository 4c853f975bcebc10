// How much memory this process may use: the machine's and the control group's figures.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace base {

// Bytes. Read anew on each call of ReadMemoryInfo.
struct MemoryInfo {
  uint64_t total = 0;                                   // of the machine
  uint64_t available = 0;                               // without swapping, as the kernel estimates it
  std::optional<uint64_t> cgroup_limit = std::nullopt;  // absent when unlimited
};

// `root` stands before /proc and /sys, for tests; a figure that cannot be read is 0 or absent.
MemoryInfo ReadMemoryInfo(const std::string& root = "");

}  // namespace base
