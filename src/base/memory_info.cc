// How much memory this process may use.
#include "base/memory_info.h"

#include <fstream>
#include <sstream>

namespace base {
namespace {

uint64_t MeminfoBytes(const std::string& text, const std::string& key) {
  const size_t at = text.find(key + ":");
  if (at == std::string::npos) return 0;
  return std::strtoull(text.c_str() + at + key.size() + 1, nullptr, 10) * 1024;
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The smallest limit on the way from the process's group to the root: v2 memory.max, v1 memory.limit_in_bytes.
std::optional<uint64_t> SmallestLimit(const std::string& mount, std::string group, const char* file) {
  std::optional<uint64_t> smallest;
  while (true) {
    const std::string text = ReadAll(mount + group + "/" + file);
    if (!text.empty() && text[0] >= '0' && text[0] <= '9') {
      const uint64_t limit = std::strtoull(text.c_str(), nullptr, 10);
      if (limit < (uint64_t{1} << 62) && (!smallest || limit < *smallest))
        smallest = limit;  // v1 says "no limit" by a huge number
    }
    if (group.empty() || group == "/") return smallest;
    group.resize(group.rfind('/'));
  }
}

}  // namespace

MemoryInfo ReadMemoryInfo(const std::string& root) {
  MemoryInfo info;
  const std::string meminfo = ReadAll(root + "/proc/meminfo");
  info.total = MeminfoBytes(meminfo, "MemTotal");
  info.available = MeminfoBytes(meminfo, "MemAvailable");
  std::istringstream groups(ReadAll(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    std::optional<uint64_t> limit;
    if (controllers.empty()) limit = SmallestLimit(root + "/sys/fs/cgroup", group, "memory.max");
    if (controllers == "memory") limit = SmallestLimit(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
    if (limit && (!info.cgroup_limit || *limit < *info.cgroup_limit)) info.cgroup_limit = limit;
  }
  return info;
}

}  // namespace base
