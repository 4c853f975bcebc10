// The plain attention ops against values worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "base/check.h"
#include "tests/vt/kernel_test_util.h"
#include "vt/ref/cache.h"
#include "vt/ref/kernels.h"

namespace vt {
namespace {

using testing::HostTensor;
using testing::IntTensor;
using testing::ThreadContext;
using Floats = std::vector<float>;

// One query head, one kv head, head_dim 4, two blocks of 16.
struct RopeCase {
  HostTensor<float> qkv{{1, 12}, Floats{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  static constexpr KvPage kPage{DType::kF32, 16, 1, 4};
  HostTensor<uint8_t> cache{{2, kPage.bytes()}, uint8_t{0}};
  HostTensor<int32_t> positions = IntTensor({3}), slots = IntTensor({17});
  RopeTable rope{.dim = 4, .inverse_frequency = {0.5f, 0.1f}};

  void Run() {
    ThreadContext context;
    RefQkNormRopeCacheWrite(QkNormRopeCacheWriteOp<Tensor>{.qkv = qkv.view(),
                                                           .positions = positions.view(),
                                                           .slots = slots.view(),
                                                           .cache = cache.view(),
                                                           .kv_dtype = DType::kF32,
                                                           .block_size = 16,
                                                           .heads = 1,
                                                           .kv_heads = 1,
                                                           .head_dim = 4,
                                                           .rope = &rope},
                            context);
  }
};

TEST(RefQkNormRope, RotatesTheTwoHalvesAgainstEachOther) {
  RopeCase c;
  c.Run();
  EXPECT_FLOAT_EQ(c.qkv.values[0], 1 * std::cos(1.5f) - 3 * std::sin(1.5f));
  EXPECT_FLOAT_EQ(c.qkv.values[2], 3 * std::cos(1.5f) + 1 * std::sin(1.5f));
  EXPECT_FLOAT_EQ(c.qkv.values[1], 2 * std::cos(0.3f) - 4 * std::sin(0.3f));
  EXPECT_FLOAT_EQ(c.qkv.values[5], 6 * std::cos(0.3f) - 8 * std::sin(0.3f));
  EXPECT_EQ(c.qkv.values[8], 9);
}

TEST(RefQkNormRope, InterleavedRotatesNeighboursAndScalesByTheAttentionFactor) {
  RopeCase c;
  c.rope.interleaved = true;
  c.rope.attention_factor = 2;
  c.Run();
  EXPECT_FLOAT_EQ(c.qkv.values[0], 2 * (1 * std::cos(1.5f) - 2 * std::sin(1.5f)));
  EXPECT_FLOAT_EQ(c.qkv.values[1], 2 * (2 * std::cos(1.5f) + 1 * std::sin(1.5f)));
  EXPECT_FLOAT_EQ(c.qkv.values[3], 2 * (4 * std::cos(0.3f) + 3 * std::sin(0.3f)));
}

TEST(RefQkNormRope, RotatesOnlyTheFirstDimElements) {
  RopeCase c;
  c.rope = {.dim = 2, .inverse_frequency = {0.5f}};
  c.Run();
  EXPECT_FLOAT_EQ(c.qkv.values[0], 1 * std::cos(1.5f) - 2 * std::sin(1.5f));
  EXPECT_EQ(c.qkv.values[2], 3);
}

TEST(RefQkNormRope, WritesKAndVAtTheSlotAndNothingBelowZero) {
  RopeCase c;
  c.Run();
  const CacheView cache(c.cache.view(), RopeCase::kPage);
  EXPECT_EQ(cache.Load(17, KvKind::kKey, 0, 0), c.qkv.values[4]);
  EXPECT_EQ(cache.Load(17, KvKind::kValue, 0, 3), 12);
  RopeCase unwritten;
  unwritten.slots.values[0] = -1;
  unwritten.Run();
  EXPECT_EQ(unwritten.cache.values, std::vector<uint8_t>(1024, 0));
}

TEST(RefQkNormRope, RefusesASlotPastTheCache) {
  RopeCase c;
  c.slots.values[0] = 32;
  EXPECT_THROW(c.Run(), base::InternalError);
}

TEST(RefQkNormRope, NormalizesEachHeadBeforeItsRotation) {
  RopeCase c;
  HostTensor<float> q_norm({4}, Floats{1, 1, 1, 1}), k_norm({4}, Floats{0, 0, 0, 1});
  c.rope = {};
  ThreadContext context;
  RefQkNormRopeCacheWrite(QkNormRopeCacheWriteOp<Tensor>{.qkv = c.qkv.view(),
                                                         .q_norm = q_norm.view(),
                                                         .k_norm = k_norm.view(),
                                                         .positions = c.positions.view(),
                                                         .slots = c.slots.view(),
                                                         .cache = c.cache.view(),
                                                         .kv_dtype = DType::kF32,
                                                         .block_size = 16,
                                                         .heads = 1,
                                                         .kv_heads = 1,
                                                         .head_dim = 4,
                                                         .qk_norm = NormKind::kRmsOnePlus,
                                                         .eps = 0,
                                                         .rope = &c.rope},
                          context);
  EXPECT_FLOAT_EQ(c.qkv.values[0], 2 / std::sqrt(7.5f));
  EXPECT_FLOAT_EQ(c.qkv.values[4], 5 / std::sqrt(43.5f));
  EXPECT_FLOAT_EQ(c.qkv.values[7], 16 / std::sqrt(43.5f));
}

// Two heads share one kv head whose second dimension is 0: a score is q * k, so the weights are known. The last three
// of 17 positions are in two blocks, with keys 0, ln 2 and ln 3; those before have a key so low that the first head
// does not see them, and the value 30.
struct PagedCase {
  static constexpr KvPage kPage{DType::kF32, 16, 1, 2};
  HostTensor<float> qkv{{1, 8}, Floats{1, 0, 0, 0, 99, 99, 99, 99}}, out{{1, 4}, 0.0f};
  HostTensor<uint8_t> cache{{3, kPage.bytes()}, uint8_t{0x7f}};
  HostTensor<int32_t> cu_q = IntTensor({0, 1}), seq_len = IntTensor({17}), table{{1, 2}, std::vector<int32_t>{2, 0}};

  PagedCase() {
    const CacheView view(cache.view(), kPage);
    for (int p = 0; p < 17; ++p) {
      const float keys[] = {p < 14 ? -1e4f : std::log(static_cast<float>(p - 13)), 0};
      const float values[] = {p < 14 ? 30.0f : p == 14 ? 10.0f : p == 15 ? 20.0f : 40.0f, 0};
      view.Store(p < 16 ? 32 + p : 0, 0, keys, values);
    }
  }
  void Run(int window = 0, float scale = 1, float softcap = 0) {
    ThreadContext context;
    RefPagedAttention(PagedAttentionOp<Tensor>{.qkv = qkv.view(),
                                               .cache = cache.view(),
                                               .cu_q = cu_q.view(),
                                               .seq_len = seq_len.view(),
                                               .block_table = table.view(),
                                               .out = out.view(),
                                               .kv_dtype = DType::kF32,
                                               .block_size = 16,
                                               .heads = 2,
                                               .kv_heads = 1,
                                               .head_dim = 2,
                                               .window = window,
                                               .scale = scale,
                                               .softcap = softcap},
                      context);
  }
};

TEST(RefPagedAttention, WeighsTheValuesOfTheSequencesOwnBlocks) {
  PagedCase c;
  c.Run();
  EXPECT_FLOAT_EQ(c.out.values[0], (1 * 10 + 2 * 20 + 3 * 40) / 6.0f);
  EXPECT_FLOAT_EQ(c.out.values[2], (14 * 30 + 10 + 20 + 40) / 17.0f);
}

TEST(RefPagedAttention, AWindowSeesItsLastPositionsOnly) {
  PagedCase c;
  c.Run(2);
  EXPECT_FLOAT_EQ(c.out.values[0], (2 * 20 + 3 * 40) / 5.0f);
  EXPECT_FLOAT_EQ(c.out.values[2], 30);
}

TEST(RefPagedAttention, ASoftcapBendsTheScaledScores) {
  PagedCase c;
  c.Run(3, 2, 0.5f);
  const float w1 = std::exp(0.5f * std::tanh(2 * std::log(2.0f) / 0.5f)),
              w2 = std::exp(0.5f * std::tanh(2 * std::log(3.0f) / 0.5f));
  EXPECT_FLOAT_EQ(c.out.values[0], (10 + w1 * 20 + w2 * 40) / (1 + w1 + w2));
}

TEST(RefPagedAttention, RefusesABlockOutsideTheCache) {
  PagedCase c;
  c.table.values[1] = 3;
  EXPECT_THROW(c.Run(), base::InternalError);
}

TEST(RefPagedAttention, DoesNotLookAtBlocksBehindTheWindow) {
  PagedCase c;
  c.table.values[0] = -5;
  c.Run(1);
  EXPECT_FLOAT_EQ(c.out.values[0], 40);
}

TEST(RefAttention, ACausalQuerySeesTheKeysUpToItsOwn) {
  HostTensor<float> q({2, 1, 1}, Floats{1, 1}), k({2, 1, 1}, Floats{0, std::log(3.0f)}), v({2, 1, 1}, Floats{4, 8}),
      out({2, 1, 1}, 0.0f);
  ThreadContext context;
  AttentionOp<Tensor> op{.q = q.view(), .k = k.view(), .v = v.view(), .out = out.view(), .scale = 1, .causal = true};
  RefAttention(op, context);
  EXPECT_FLOAT_EQ(out.values[0], 4);
  EXPECT_FLOAT_EQ(out.values[1], 7);
  op.causal = false;
  RefAttention(op, context);
  EXPECT_FLOAT_EQ(out.values[0], 7);
}

}  // namespace
}  // namespace vt
