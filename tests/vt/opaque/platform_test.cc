// The opaque device: what the host may not do is seen, and the rest works.
#include "vt/opaque/platform.h"

#include <gtest/gtest.h>

#include <set>

#include "base/check.h"
#include "base/result.h"
#include "tests/vt/kernel_test_util.h"
#include "vt/ref/kernels.h"
#include "vt/weight.h"

namespace vt {
namespace {

using testing::HostTensor;
using testing::IntTensor;
using Floats = std::vector<float>;

class Opaque : public ::testing::Test {
 protected:
  Buffer Upload(HostTensor<float>& host) {
    Buffer buffer = platform_->Allocate(host.values.size() * sizeof(float));
    queue_->CopyAsync(On(buffer, host), host.view());
    queue_->Synchronize();
    return buffer;
  }
  static Tensor On(const Buffer& buffer, HostTensor<float>& shape) {
    Tensor tensor = shape.view();
    tensor.data = buffer.data();
    tensor.device = buffer.device();
    return tensor;
  }
  Floats Download(const Buffer& buffer) {
    HostTensor<float> host({static_cast<int64_t>(buffer.size() / sizeof(float))}, 0.0f);
    queue_->CopyAsync(host.view(), On(buffer, host));
    queue_->Synchronize();
    return host.values;
  }
  static OpKernel Kernel(OpId op, KernelFn run) {
    return {.op = op, .device = DeviceType::kOpaque, .provider = "ref", .run = run};
  }

  std::shared_ptr<Platform> platform_ = MakeOpaquePlatform();
  std::unique_ptr<Queue> queue_ = platform_->MakeQueue();
};

using OpaqueDeath = Opaque;

TEST_F(OpaqueDeath, AHostReadOfDeviceMemoryFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Buffer buffer = platform_->Allocate(64);
  EXPECT_DEATH({ std::exit(static_cast<int>(*static_cast<volatile std::byte*>(buffer.data()))); }, "");
}

TEST_F(OpaqueDeath, AHostWriteOfDeviceMemoryFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Buffer buffer = platform_->Allocate(64);
  EXPECT_DEATH(
      {
        *static_cast<volatile std::byte*>(buffer.data()) = std::byte{1};
        std::exit(0);
      },
      "");
}

TEST_F(OpaqueDeath, AKernelThatRunsPastItsBufferFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  HostTensor<float> x({1, 16}, 1.0f);
  const Buffer buffer = Upload(x);
  const KernelFn past = [](const OpArgs& args, KernelContext&) {
    static_cast<volatile float*>(std::get<SoftcapOp<Tensor>>(args).x.as<float>())[16] = 1;
  };
  queue_->Launch(Kernel(OpId::kSoftcap, past), SoftcapOp<Tensor>{.x = On(buffer, x)}, {});
  EXPECT_DEATH(
      {
        queue_->Synchronize();
        std::exit(0);
      },
      "");
}

TEST_F(Opaque, BytesComeBackAsTheyWentIn) {
  HostTensor<float> host({4}, Floats{1, 2, 3, 4});
  EXPECT_EQ(Download(Upload(host)), host.values);
}

TEST_F(Opaque, FreshMemoryIsZero) { EXPECT_EQ(Download(platform_->Allocate(12)), (Floats{0, 0, 0})); }

TEST_F(Opaque, ACopyWithinTheDeviceNeedsNoHostBytes) {
  HostTensor<float> host({2}, Floats{5, 6});
  const Buffer source = Upload(host), target = platform_->Allocate(8);
  queue_->CopyAsync(On(target, host), On(source, host));
  EXPECT_EQ(Download(target), host.values);
}

TEST_F(Opaque, AHostSourceIsReadOnlyInWait) {
  HostTensor<float> host({2}, Floats{1, 2});
  const Buffer buffer = platform_->Allocate(8);
  queue_->CopyAsync(On(buffer, host), host.view());
  host.values = {3, 4};
  queue_->Synchronize();
  EXPECT_EQ(Download(buffer), (Floats{3, 4}));
}

TEST_F(Opaque, AHostTargetIsWrittenOnlyInWait) {
  HostTensor<float> host({2}, Floats{1, 2}), back({2}, Floats{0, 0});
  const Buffer buffer = Upload(host);
  queue_->CopyAsync(back.view(), On(buffer, back));
  EXPECT_EQ(back.values, (Floats{0, 0}));
  queue_->Synchronize();
  EXPECT_EQ(back.values, host.values);
}

TEST_F(Opaque, WaitRunsWhatWasRecordedBeforeTheEventOnly) {
  HostTensor<float> host({1}, 1.0f), first({1}, 0.0f), second({1}, 0.0f);
  const Buffer buffer = Upload(host);
  queue_->CopyAsync(first.view(), On(buffer, first));
  const Event event = queue_->Record();
  queue_->CopyAsync(second.view(), On(buffer, second));
  queue_->Wait(event);
  EXPECT_EQ(first.values[0], 1);
  EXPECT_EQ(second.values[0], 0);
  queue_->Wait(event);
  EXPECT_EQ(second.values[0], 0);
  queue_->Synchronize();
  EXPECT_EQ(second.values[0], 1);
}

TEST_F(Opaque, AddressesAreNeverUsedTwice) {
  std::set<std::byte*> seen;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(seen.insert(platform_->Allocate(1000).data()).second);
}

TEST_F(Opaque, BuffersAreAlignedForVectors) {
  for (size_t bytes : {size_t{1}, size_t{63}, size_t{4097}, size_t{100000}})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(platform_->Allocate(bytes).data()) % 64, 0u);
}

TEST_F(Opaque, AKernelRunsInWaitOnTranslatedOperands) {
  HostTensor<float> x({1, 3}, Floats{1, 2, 3});
  const Buffer buffer = Upload(x);
  queue_->Launch(Kernel(OpId::kSoftcap, RefSoftcap), SoftcapOp<Tensor>{.x = On(buffer, x), .scale = 2}, {});
  EXPECT_EQ(Download(buffer), (Floats{2, 4, 6}));
}

TEST_F(Opaque, AKernelReadsAWeightThatLiesOnTheDevice) {
  HostTensor<float> rows({2, 2}, Floats{1, 2, 3, 4}), x({1, 2}, Floats{10, 1}), out({1, 2}, 0.0f);
  const WeightSource source{.name = "w", .n = 2, .k = 2, .bytes = std::as_bytes(std::span(rows.values))};
  ResidentSlot slot;
  slot.Load({&source, 1}, WeightUse::kMatrix, *platform_);
  rows.values = {0, 0, 0, 0};
  const Buffer x_buffer = Upload(x), out_buffer = platform_->Allocate(8);
  queue_->Launch(Kernel(OpId::kLinear, RefLinear),
                 LinearOp<Tensor>{.x = On(x_buffer, x), .out = On(out_buffer, out), .weight = slot.Get().get()}, {});
  EXPECT_EQ(Download(out_buffer), (Floats{12, 34}));
}

TEST_F(Opaque, AKernelsErrorComesFromWaitAndTheNextCommandStillRuns) {
  HostTensor<float> x({1, 1}, 1.0f), out({1, 1}, 0.0f), back({1, 1}, 0.0f);
  HostTensor<int32_t> indices = IntTensor({7});
  const Buffer x_buffer = Upload(x), out_buffer = platform_->Allocate(4), index_buffer = platform_->Allocate(4);
  Tensor device_indices = indices.view();
  device_indices.data = index_buffer.data(), device_indices.device = index_buffer.device();
  queue_->CopyAsync(device_indices, indices.view());
  queue_->Launch(Kernel(OpId::kGatherRows, RefGatherRows),
                 GatherRowsOp<Tensor>{.x = On(x_buffer, x), .indices = device_indices, .out = On(out_buffer, out)}, {});
  queue_->CopyAsync(back.view(), On(x_buffer, x));
  EXPECT_THROW(queue_->Synchronize(), base::InternalError);
  queue_->Synchronize();
  EXPECT_EQ(back.values[0], 1);
}

TEST_F(Opaque, AHostTensorAsOperandIsRefusedAtLaunch) {
  HostTensor<float> x({1, 1}, 1.0f);
  EXPECT_THROW(queue_->Launch(Kernel(OpId::kSoftcap, RefSoftcap), SoftcapOp<Tensor>{.x = x.view()}, {}),
               base::InternalError);
  Tensor lying = x.view();
  lying.device = platform_->device();
  EXPECT_THROW(queue_->Launch(Kernel(OpId::kSoftcap, RefSoftcap), SoftcapOp<Tensor>{.x = lying}, {}),
               base::InternalError);
}

TEST_F(Opaque, ABufferFreedBeforeTheWaitIsFound) {
  HostTensor<float> x({1, 1}, 1.0f);
  {
    const Buffer buffer = Upload(x);
    queue_->Launch(Kernel(OpId::kSoftcap, RefSoftcap), SoftcapOp<Tensor>{.x = On(buffer, x)}, {});
  }
  EXPECT_THROW(queue_->Synchronize(), base::InternalError);
}

TEST_F(Opaque, CopiesOfDifferentShapesAreRefused) {
  HostTensor<float> two({2}, 0.0f), three({3}, 0.0f);
  const Buffer buffer = platform_->Allocate(12);
  EXPECT_THROW(queue_->CopyAsync(On(buffer, three), two.view()), base::InternalError);
}

TEST_F(Opaque, SaysThatTheHostMayNotTouchItsMemory) {
  EXPECT_EQ(platform_->info().type, DeviceType::kOpaque);
  EXPECT_FALSE(platform_->info().host_memory);
}

TEST_F(Opaque, MoreThanItsAddressesIsRefusedWithTheSize) {
  try {
    platform_->Allocate(size_t{300} << 30);
    FAIL();
  } catch (const base::Exception& error) {
    EXPECT_EQ(error.code(), base::ErrorCode::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("322122547200 bytes"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace vt
