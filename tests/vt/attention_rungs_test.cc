// The dense rungs: their bounds, their refusals, and that each call runs the op it names and no other.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/result.h"
#include "tests/vt/kernel_test_util.h"
#include "vt/buffer.h"
#include "vt/cpu/kernels.h"
#include "vt/ref/kernels.h"

namespace vt {
namespace {

using testing::HostTensor;
using testing::MaxRelativeError;
using testing::RandomTensor;
using testing::ThreadContext;

// Records launches, runs nothing.
class RecordingQueue : public Queue {
 public:
  void Launch(const OpKernel& kernel, const OpArgs&, const KernelOptions&) override { launched.push_back(kernel.op); }
  void CopyAsync(Tensor, Tensor) override {}
  Event Record() override { return {}; }
  void Wait(Event) override {}
  std::vector<OpId> launched = {};
};

AttentionOp<Tensor> OpOfWidth(int64_t head_dim, DType dtype = DType::kF32) {
  return {.q = MakeTensor(nullptr, dtype, {1, 1, head_dim}, {}), .scale = 1};
}

std::string RefusalOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const base::Exception& error) {
    return error.what();
  }
  return "";
}

TEST(AttentionRungs, TheWidestTilesFillTheSharedMemoryExactly) {
  EXPECT_EQ(AttentionDenseFlashSmemBytes(192, 2), 49152);
  EXPECT_EQ(AttentionDenseFlashSmemBytes(96, 4), 49152);
  EXPECT_EQ(AttentionDenseFlashSmemBytes(128, 4), 65536);
  EXPECT_EQ(AttentionDenseFlashSmemBytes(256, 4), 131072);
}

TEST(AttentionRungs, TheBoundIsInclusive) {
  EXPECT_EQ(AttentionDenseFlashMaxHeadDim(2), 192);
  EXPECT_EQ(AttentionDenseFlashMaxHeadDim(4), 96);
  EXPECT_LT(AttentionDenseFlashMaxHeadDim(2), 256);
}

TEST(AttentionRungs, TheBoundNeverPassesTheRungsOwnWidth) { EXPECT_EQ(AttentionDenseFlashMaxHeadDim(1), 256); }

TEST(AttentionRungs, BytesAndBoundAgreeFromBothSides) {
  for (int64_t elem : {2, 4, 8, 3, 6, 12}) {
    const int64_t largest = AttentionDenseFlashMaxHeadDim(elem);
    EXPECT_LE(AttentionDenseFlashSmemBytes(largest, elem), kAttentionSmemBytes) << elem;
    EXPECT_GT(AttentionDenseFlashSmemBytes(largest + 1, elem), kAttentionSmemBytes) << elem;
    for (int64_t d = 1; d <= kAttentionDenseMaxHeadDim; ++d)
      EXPECT_EQ(d <= largest, AttentionDenseFlashSmemBytes(d, elem) <= kAttentionSmemBytes) << d << " of " << elem;
  }
}

TEST(AttentionRungs, FlashRefusesAWidthAboveTheBoundBeforeAnythingIsLaunched) {
  RecordingQueue queue;
  for (const auto& [width, dtype] :
       {std::pair{97, DType::kF32}, {128, DType::kF32}, {193, DType::kBF16}, {256, DType::kBF16}}) {
    const std::string refusal =
        RefusalOf([&] { AttentionDenseFlash(queue, DeviceType::kCpu, OpOfWidth(width, dtype)); });
    EXPECT_NE(refusal.find("head_dim " + std::to_string(width)), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("vt::AttentionDenseFast"), std::string::npos) << refusal;
  }
  EXPECT_TRUE(queue.launched.empty());
}

TEST(AttentionRungs, AtTheBoundFlashGetsAsFarAsItsMissingKernel) {
  RecordingQueue queue;
  for (const auto& [width, dtype] : {std::pair{96, DType::kF32}, {192, DType::kBF16}}) {
    const std::string refusal =
        RefusalOf([&] { AttentionDenseFlash(queue, DeviceType::kCpu, OpOfWidth(width, dtype)); });
    EXPECT_NE(refusal.find("no kernel"), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find("head_dim"), std::string::npos) << refusal;
  }
}

TEST(AttentionRungs, ARungWithoutAKernelIsRefusedByItsName) {
  RecordingQueue queue;
  for (DeviceType device : {DeviceType::kCpu, DeviceType::kRef, DeviceType::kOpaque}) {
    EXPECT_NE(RefusalOf([&] { AttentionDenseFlash(queue, device, OpOfWidth(64)); }).find("vt::AttentionDenseFlash"),
              std::string::npos);
    EXPECT_NE(RefusalOf([&] { AttentionDenseFast(queue, device, OpOfWidth(64)); }).find("vt::AttentionDenseFast"),
              std::string::npos);
  }
  EXPECT_NE(RefusalOf([&] { Attention(queue, DeviceType::kCuda, OpOfWidth(64)); }).find("'cuda'"), std::string::npos);
  EXPECT_TRUE(queue.launched.empty());
}

TEST(AttentionRungs, FastRefusesAWidthAboveItsOwnBound) {
  RecordingQueue queue;
  EXPECT_NE(RefusalOf([&] { AttentionDenseFast(queue, DeviceType::kCpu, OpOfWidth(257)); }).find("head_dim 257"),
            std::string::npos);
}

TEST(AttentionRungs, OnlyTheNaiveRungIsRegistered) {
  for (DeviceType device : {DeviceType::kCpu, DeviceType::kRef, DeviceType::kOpaque}) {
    EXPECT_TRUE(OpRegistered(OpId::kAttention, device));
    for (OpId op :
         {OpId::kAttentionDenseFast, OpId::kAttentionDenseFlash, OpId::kAttentionDenseFa2, OpId::kAttentionCross})
      EXPECT_FALSE(OpRegistered(op, device)) << OpName(op);
  }
}

uint64_t Chosen(OpId op, DeviceType device) {
  for (const OpProviderStats& stats : GetOpProviderStats())
    if (stats.op == op && stats.device == device) return stats.chosen;
  return 0;
}

TEST(AttentionRungs, ACallChoosesItsOwnOpAndNoOther) {
  RecordingQueue queue;
  const uint64_t before = Chosen(OpId::kAttention, DeviceType::kCpu);
  for (int i = 0; i < 3; ++i) {
    // VT-ATTN-NAIVE: this test counts the naive rung itself.
    Attention(queue, DeviceType::kCpu, OpOfWidth(64));
  }
  EXPECT_EQ(Chosen(OpId::kAttention, DeviceType::kCpu), before + 3);
  EXPECT_EQ(queue.launched, std::vector<OpId>(3, OpId::kAttention));
}

TEST(AttentionRungs, TheCpuNaiveRungEqualsThePlainOne) {
  for (bool causal : {false, true})
    for (int workers : {1, 3}) {
      HostTensor<float> q = RandomTensor({13, 6, 20}, 1), k = RandomTensor({17, 2, 20}, 2),
                        v = RandomTensor({17, 2, 20}, 3), expected({13, 6, 20}, NAN), got({13, 6, 20}, NAN);
      AttentionOp<Tensor> op{.q = q.view(), .k = k.view(), .v = v.view(), .scale = 0.3f, .causal = causal};
      ThreadContext context(Isa::kAvx2, workers);
      op.out = expected.view();
      RefAttention(op, context);
      op.out = got.view();
      CpuAttention(op, context);
      EXPECT_LT(MaxRelativeError(got.values, expected.values, 0.01), 1e-6);
      EXPECT_EQ(context.barriers(), workers > 1 ? 1 : 0);
    }
}

}  // namespace
}  // namespace vt
