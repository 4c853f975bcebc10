// How many processors this process may use: affinity mask, physical cores and cgroup limits (v1 and v2).
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace base {

// Processors of the calling thread's affinity mask, ascending. Never empty.
std::vector<int> AffinityCpus();

// One processor per physical core out of `cpus` (the first sibling of each). `root` replaces "/" in tests. A processor
// whose topology cannot be read counts as a core of its own.
std::vector<int> PhysicalCores(const std::vector<int>& cpus, const std::string& root = "");

// CPU time limit of this process's cgroup and its parents in processors (1.5 = 150 ms each 100 ms), the smallest found;
// nullopt when there is none.
std::optional<double> CgroupCpuLimit(const std::string& root = "");

// Memory limit of this process's cgroup and its parents in bytes, the smallest found; nullopt when there is none.
std::optional<unsigned long long> CgroupMemoryLimit(const std::string& root = "");

// Threads worth running: physical cores of the affinity mask, at most the cgroup limit rounded up; at least 1.
int UsableCores(const std::string& root = "");

}  // namespace base
