// Tests of cpu_info on made-up /proc and /sys trees.
#include "base/cpu_info.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace base {
namespace {

class FakeRoot {
 public:
  FakeRoot() : path_(std::filesystem::temp_directory_path() / ("cpu_info_test_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = path_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string str() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

constexpr char kMountV2[] = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr char kMountV1[] = "33 24 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

TEST(CpuInfo, ReadsTheV2LimitOfTheGroupAndItsParents) {
  FakeRoot root;
  root.Write("proc/self/cgroup", "0::/a/b\n");
  root.Write("proc/self/mountinfo", kMountV2);
  root.Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_FALSE(CgroupCpuLimit(root.str()).has_value());
  root.Write("sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  EXPECT_DOUBLE_EQ(CgroupCpuLimit(root.str()).value(), 2.5);
  root.Write("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(CgroupCpuLimit(root.str()).value(), 0.5);
}

TEST(CpuInfo, ReadsTheV1Limit) {
  FakeRoot root;
  root.Write("proc/self/cgroup", "5:cpuset:/\n4:cpu,cpuacct:/job\n");
  root.Write("proc/self/mountinfo", kMountV1);
  root.Write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  root.Write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(CgroupCpuLimit(root.str()).has_value());
  root.Write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n");
  EXPECT_DOUBLE_EQ(CgroupCpuLimit(root.str()).value(), 1.5);
}

TEST(CpuInfo, AContainerMountRootIsCutFromTheGroupPath) {
  FakeRoot root;
  root.Write("proc/self/cgroup", "4:cpu:/docker/xyz\n");
  root.Write("proc/self/mountinfo", "33 24 0:29 /docker/xyz /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  root.Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  root.Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(CgroupCpuLimit(root.str()).value(), 3);
}

TEST(CpuInfo, ReadsMemoryLimitsAndIgnoresTheUnlimitedNumber) {
  FakeRoot root;
  root.Write("proc/self/cgroup", "0::/x\n");
  root.Write("proc/self/mountinfo", kMountV2);
  EXPECT_FALSE(CgroupMemoryLimit(root.str()).has_value());
  root.Write("sys/fs/cgroup/x/memory.max", "9223372036854771712\n");
  EXPECT_FALSE(CgroupMemoryLimit(root.str()).has_value());
  root.Write("sys/fs/cgroup/x/memory.max", "1073741824\n");
  EXPECT_EQ(CgroupMemoryLimit(root.str()).value(), 1073741824u);
}

TEST(CpuInfo, CountsOneProcessorPerCore) {
  FakeRoot root;
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    root.Write(folder + "core_id", std::to_string(cpu % 2) + "\n");
    root.Write(folder + "physical_package_id", "0\n");
  }
  EXPECT_EQ(PhysicalCores({0, 1, 2, 3}, root.str()), (std::vector<int>{0, 1}));
  EXPECT_EQ(PhysicalCores({1, 3, 9}, root.str()), (std::vector<int>{1, 9}));
}

TEST(CpuInfo, UsableCoresIsBoundByTheCgroupRoundedUpAndAtLeastOne) {
  FakeRoot root;
  EXPECT_EQ(UsableCores(root.str()), static_cast<int>(AffinityCpus().size()));
  root.Write("proc/self/cgroup", "0::/\n");
  root.Write("proc/self/mountinfo", kMountV2);
  root.Write("sys/fs/cgroup/cpu.max", "10000 100000\n");
  EXPECT_EQ(UsableCores(root.str()), 1);
}

}  // namespace
}  // namespace base
