// Tests of the host platform, its queue and the choice of an instruction set.
#include "vt/cpu/platform.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "base/cpu_info.h"
#include "base/result.h"
#include "tests/vt/kernel_test_util.h"
#include "vt/cpu/isa.h"
#include "vt/kernel_context.h"

namespace vt {
namespace {

std::string ErrorOf(const PlatformOptions& options) {
  try {
    MakeHostPlatform(DeviceType::kCpu, options);
  } catch (const base::Exception& error) {
    return error.what();
  }
  return "";
}

TEST(HostPlatform, SaysWhatItIs) {
  const auto platform = MakeHostPlatform(DeviceType::kCpu, {});
  const PlatformInfo& info = platform->info();
  EXPECT_EQ(info.type, DeviceType::kCpu);
  EXPECT_TRUE(info.host_memory);
  EXPECT_EQ(info.threads, base::UsableCores());
  EXPECT_EQ(info.isa, IsaName(DetectIsa()));
  EXPECT_NE(info.name.find(IsaLongName(DetectIsa())), std::string::npos);
  EXPECT_GT(info.total_memory, 64u << 20);
}

TEST(HostPlatform, TheReferenceDeviceHasOneThread) {
  const auto platform = MakeHostPlatform(DeviceType::kRef, {.threads = 4});
  EXPECT_EQ(platform->info().threads, 1);
  EXPECT_EQ(platform->device().type, DeviceType::kRef);
}

TEST(HostPlatform, AForcedInstructionSetIsUsedOrRefusedInOneLine) {
  for (const std::string isa : {"avx2", "avxvnni", "avx512", "amx"}) {
    const Isa lowest = isa == "avx2" ? Isa::kAvx2 : isa == "avx512" ? Isa::kAvx512 : Isa::kAmx;
    if (isa == "avxvnni" ? HasAvxVnni() : DetectIsa() >= lowest) {
      EXPECT_EQ(MakeHostPlatform(DeviceType::kCpu, {.isa = isa})->info().isa, isa);
      continue;
    }
    const std::string error = ErrorOf({.isa = isa});
    EXPECT_EQ(error.find("VT_CPU_ISA: " + isa + " is not available"), 0u) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  EXPECT_EQ(ErrorOf({.isa = "sse9"}), "VT_CPU_ISA: 'sse9' is none of avx2, avxvnni, avx512, amx");
}

TEST(HostPlatform, ThreadCountsOutOfRangeAreRefused) {
  EXPECT_NE(ErrorOf({.threads = -1}).find("threads: -1"), std::string::npos);
  EXPECT_NE(ErrorOf({.threads = 1 << 20}).find("threads: 1048576"), std::string::npos);
}

TEST(HostPlatform, BuffersAreAlignedZeroAndTakeNoMemoryUntilTouched) {
  const auto platform = MakeHostPlatform(DeviceType::kCpu, {.threads = 1});
  // More than a test machine has, and what the sanitizers leave room for.
  const Buffer large = platform->Allocate(size_t{1} << 38);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.data()) % 64, 0u);
  EXPECT_EQ(large.data()[(size_t{1} << 38) - 1], std::byte{0});
  EXPECT_EQ(large.size(), size_t{1} << 38);
  EXPECT_NE(platform->Allocate(0).data(), nullptr);
}

TEST(HostPlatform, AnImpossibleSizeIsOutOfMemory) {
  const auto platform = MakeHostPlatform(DeviceType::kCpu, {.threads = 1});
  try {
    platform->Allocate(size_t{1} << 60);
    FAIL() << "allocated";
  } catch (const base::Exception& error) {
    EXPECT_EQ(error.code(), base::ErrorCode::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("1152921504606846976"), std::string::npos);
  }
}

Numerics seen_numerics;
int seen_workers;
int64_t seen_sum;
void ProbeKernel(const OpArgs&, KernelContext& context) {
  seen_numerics = context.numerics;
  seen_workers = context.workers;
  for (int w = 0; w < context.workers; ++w) {
    const std::span<std::byte> scratch = context.Scratch(w, 5000);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(scratch.data()) % 64, 0u);
    ASSERT_EQ(scratch.size(), 5000u);
    std::memset(scratch.data(), 0, scratch.size());
  }
  context.ParallelFor(1000, 7, [&](int64_t begin, int64_t end, int worker) {
    int64_t* sum = reinterpret_cast<int64_t*>(context.Scratch(worker, 5000).data());
    for (int64_t i = begin; i < end; ++i) *sum += i;
  });
  seen_sum = 0;
  for (int w = 0; w < context.workers; ++w) seen_sum += *reinterpret_cast<int64_t*>(context.Scratch(w, 5000).data());
}

TEST(HostQueue, RunsAKernelAtOnceOnAllWorkersAndCountsIt) {
  static constexpr OpKernel kProbe = {OpId::kSoftcap, DeviceType::kCpu, "cpu", ProbeKernel};
  const auto executed = [] {
    for (const OpProviderStats& row : GetOpProviderStats()) {
      if (row.op == OpId::kSoftcap && row.device == DeviceType::kCpu) return row.executed;
    }
    return uint64_t{0};
  };
  const OpKernel* kernel = FindOp(OpId::kSoftcap, DeviceType::kCpu);
  ASSERT_NE(kernel, nullptr);
  const auto queue = MakeHostPlatform(DeviceType::kCpu, {.threads = 3})->MakeQueue();
  queue->Launch(kProbe, OpArgs(SoftcapOp<Tensor>{}), {.numerics = Numerics::kInvariant});
  EXPECT_EQ(seen_numerics, Numerics::kInvariant);
  EXPECT_EQ(seen_workers, 3);
  EXPECT_EQ(seen_sum, 1000 * 999 / 2);

  testing::HostTensor<float> x = testing::RandomTensor({1, 4}, 1);
  const uint64_t before = executed();
  queue->Launch(*kernel, OpArgs(SoftcapOp<Tensor>{.x = x.view(), .scale = 2}), {});
  EXPECT_EQ(executed(), before + 1);
}

TEST(HostPlatform, HostWorkRunsOnceForEachIndexOnAllWorkers) {
  const auto platform = MakeHostPlatform(DeviceType::kCpu, {.threads = 3});
  std::vector<std::atomic<int>> runs(1000);
  platform->ForEachOnHost(1000, [&](int64_t i) { ++runs[i]; });
  for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
  platform->ForEachOnHost(0, [&](int64_t) { ADD_FAILURE() << "nothing was asked for"; });
}

TEST(HostQueue, CopiesAtOnceAndItsEventsHavePassed) {
  const auto queue = MakeHostPlatform(DeviceType::kCpu, {.threads = 1})->MakeQueue();
  testing::HostTensor<float> from = testing::RandomTensor({3, 5}, 2), to({3, 5}, 0.0f);
  queue->CopyAsync(to.view(), from.view());
  EXPECT_EQ(to.values, from.values);
  const Event first = queue->Record(), second = queue->Record();
  EXPECT_LT(first.sequence, second.sequence);
  queue->Wait(second);
  queue->Synchronize();
}

TEST(HostQueue, CopiesOfDifferentShapesAreABug) {
  const auto queue = MakeHostPlatform(DeviceType::kCpu, {.threads = 1})->MakeQueue();
  testing::HostTensor<float> a({3}, 0.0f), b({4}, 0.0f);
  EXPECT_THROW(queue->CopyAsync(a.view(), b.view()), base::InternalError);
}

}  // namespace
}  // namespace vt
