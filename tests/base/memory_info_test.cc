// Memory figures from /proc and the control group's files, of a tree that the test writes.
#include "base/memory_info.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace base {
namespace {

class Machine {
 public:
  explicit Machine(const std::string& name) : root_(testing::TempDir() + "memory_info_" + name) {
    std::filesystem::remove_all(root_);
  }
  Machine& File(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
    return *this;
  }
  MemoryInfo Read() const { return ReadMemoryInfo(root_); }

 private:
  std::string root_;
};

TEST(MemoryInfo, ReadsTotalAndAvailable) {
  Machine machine("plain");
  machine.File("/proc/meminfo", "MemTotal:       2048 kB\nMemFree:  1 kB\nMemAvailable:   1024 kB\n");
  EXPECT_EQ(machine.Read().total, 2048u * 1024);
  EXPECT_EQ(machine.Read().available, 1024u * 1024);
  EXPECT_EQ(machine.Read().cgroup_limit, std::nullopt);
}

TEST(MemoryInfo, TheSmallestLimitOfAGroupAndItsParentsCounts) {
  Machine machine("v2");
  machine.File("/proc/self/cgroup", "0::/a/b\n")
      .File("/proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
      .File("/sys/fs/cgroup/a/memory.max", "1000\n")
      .File("/sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(machine.Read().cgroup_limit, 1000u);
}

TEST(MemoryInfo, TheFirstVersionsFilesAreReadToo) {
  Machine machine("v1");
  machine.File("/proc/self/cgroup", "5:memory:/x\n4:cpu:/y\n")
      .File("/proc/self/mountinfo", "31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")
      .File("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "4096\n");
  EXPECT_EQ(machine.Read().cgroup_limit, 4096u);
}

TEST(MemoryInfo, AHugeLimitOfTheFirstVersionMeansNone) {
  Machine machine("v1none");
  machine.File("/proc/self/cgroup", "5:memory:/x\n")
      .File("/proc/self/mountinfo", "31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")
      .File("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(machine.Read().cgroup_limit, std::nullopt);
}

TEST(MemoryInfo, AMachineWithoutTheFilesHasZeros) {
  EXPECT_EQ(Machine("empty").Read().total, 0u);
  EXPECT_EQ(Machine("empty").Read().available, 0u);
}

TEST(MemoryInfo, ThisMachineHasMemory) {
  EXPECT_GT(ReadMemoryInfo().total, 0u);
  EXPECT_GT(ReadMemoryInfo().available, 0u);
}

}  // namespace
}  // namespace base
