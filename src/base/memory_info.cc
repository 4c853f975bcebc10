// How much memory this process may use.
#include "base/memory_info.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/cpu_info.h"

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

}  // namespace

MemoryInfo ReadMemoryInfo(const std::string& root) {
  MemoryInfo info;
  const std::string meminfo = ReadAll(root + "/proc/meminfo");
  info.total = MeminfoBytes(meminfo, "MemTotal");
  info.available = MeminfoBytes(meminfo, "MemAvailable");
  if (const auto limit = CgroupMemoryLimit(root)) info.cgroup_limit = *limit;
  return info;
}

}  // namespace base
