// Reads /proc and /sys for the processors, and the cgroup limits, that this process may use.
#include "base/cpu_info.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

namespace base {
namespace {

std::optional<std::string> ReadWord(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  if (!(in >> word)) return std::nullopt;
  return word;
}

// Numbers only; "max" and the like are nullopt.
std::optional<double> ToNumber(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

struct Cgroup {
  bool v2 = false;
  std::string mount;  // where the hierarchy's root is mounted
  std::string path;   // of this process below the mount
};

// True when `list` ("cpu,cpuacct") has `item`.
bool HasItem(const std::string& list, const std::string& item) {
  std::stringstream in(list);
  for (std::string part; std::getline(in, part, ',');) {
    if (part == item) return true;
  }
  return false;
}

// The v1 hierarchy of `controller` and the v2 hierarchy, those that are mounted.
std::vector<Cgroup> FindCgroups(const std::string& root, const std::string& controller) {
  std::string v1_path, v2_path;
  bool v1_found = false, v2_found = false;
  std::ifstream own(root + "/proc/self/cgroup");
  for (std::string line; std::getline(own, line);) {  // id:controllers:path
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) {
      v2_path = line.substr(second + 1), v2_found = true;
    } else if (HasItem(controllers, controller)) {
      v1_path = line.substr(second + 1), v1_found = true;
    }
  }
  std::vector<Cgroup> found;
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {  // id parent dev root mountpoint options... - type source super
    std::stringstream in(line);
    std::string id, parent, device, mount_root, point, word, type, source, super;
    in >> id >> parent >> device >> mount_root >> point;
    while (in >> word && word != "-") {
    }
    in >> type >> source >> super;
    const bool v2 = type == "cgroup2";
    if (v2 ? !v2_found : !(type == "cgroup" && v1_found && HasItem(super, controller))) continue;
    std::string path = v2 ? v2_path : v1_path;
    // A container sees its own group as the mount's root while /proc may still name it by the host's path.
    if (mount_root != "/" && path.rfind(mount_root, 0) == 0) path = path.substr(mount_root.size());
    found.push_back({v2, root + point, path});
  }
  return found;
}

// Calls read(folder) for the group and each of its parents up to the mount, and returns the smallest value.
template <class Read>
std::optional<double> Smallest(const Cgroup& group, Read&& read) {
  std::optional<double> smallest;
  std::string path = group.path;
  while (!path.empty() && path.back() == '/') path.pop_back();
  for (;;) {
    if (const std::optional<double> value = read(group.mount + path); value && (!smallest || *value < *smallest)) {
      smallest = value;
    }
    if (path.empty()) return smallest;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
}

std::optional<double> CpuLimitV2(const std::string& folder) {  // "max 100000" or "150000 100000"
  std::ifstream in(folder + "/cpu.max");
  std::string quota, period;
  if (!(in >> quota >> period)) return std::nullopt;
  const std::optional<double> q = ToNumber(quota), p = ToNumber(period);
  if (!q || !p || *q <= 0 || *p <= 0) return std::nullopt;
  return *q / *p;
}

std::optional<double> CpuLimitV1(const std::string& folder) {  // quota -1: none
  const std::optional<std::string> quota = ReadWord(folder + "/cpu.cfs_quota_us");
  const std::optional<std::string> period = ReadWord(folder + "/cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  const std::optional<double> q = ToNumber(*quota), p = ToNumber(*period);
  if (!q || !p || *q <= 0 || *p <= 0) return std::nullopt;
  return *q / *p;
}

std::optional<double> MemoryLimit(const std::string& folder, bool v2) {
  const std::optional<std::string> word = ReadWord(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  const std::optional<double> bytes = word ? ToNumber(*word) : std::nullopt;
  // v1 says "no limit" with the largest page-aligned 63-bit number.
  if (!bytes || *bytes <= 0 || *bytes > 4e18) return std::nullopt;
  return bytes;
}

}  // namespace

std::vector<int> AffinityCpus() {
  // The mask's size is the kernel's, not glibc's: grow until it fits.
  for (int size = 1024; size <= 1 << 20; size *= 2) {
    cpu_set_t* set = CPU_ALLOC(size);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(size);
    CPU_ZERO_S(bytes, set);
    std::vector<int> cpus;
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; ok && cpu < size; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (!cpus.empty()) return cpus;
  }
  return {0};
}

std::vector<int> PhysicalCores(const std::vector<int>& cpus, const std::string& root) {
  std::set<std::string> seen;
  std::vector<int> cores;
  for (const int cpu : cpus) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const std::optional<std::string> core = ReadWord(folder + "core_id");
    const std::optional<std::string> package = ReadWord(folder + "physical_package_id");
    const std::optional<std::string> die = ReadWord(folder + "die_id");
    const std::string key =
        core && package ? *package + "/" + die.value_or("0") + "/" + *core : "cpu" + std::to_string(cpu);
    if (seen.insert(key).second) cores.push_back(cpu);
  }
  return cores;
}

std::optional<double> CgroupCpuLimit(const std::string& root) {
  std::optional<double> limit;
  for (const Cgroup& group : FindCgroups(root, "cpu")) {
    const std::optional<double> found = Smallest(group, group.v2 ? CpuLimitV2 : CpuLimitV1);
    if (found && (!limit || *found < *limit)) limit = found;
  }
  return limit;
}

std::optional<unsigned long long> CgroupMemoryLimit(const std::string& root) {
  std::optional<double> limit;
  for (const Cgroup& group : FindCgroups(root, "memory")) {
    const std::optional<double> found =
        Smallest(group, [&](const std::string& folder) { return MemoryLimit(folder, group.v2); });
    if (found && (!limit || *found < *limit)) limit = found;
  }
  if (!limit) return std::nullopt;
  return static_cast<unsigned long long>(*limit);
}

int UsableCores(const std::string& root) {
  int cores = static_cast<int>(PhysicalCores(AffinityCpus(), root).size());
  if (const std::optional<double> limit = CgroupCpuLimit(root)) {
    cores = std::min(cores, static_cast<int>(std::min(std::ceil(*limit), 1e6)));
  }
  return std::max(cores, 1);
}

}  // namespace base
