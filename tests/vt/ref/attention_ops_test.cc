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
  HostTensor<float> cache{{2, 2, 16, 1, 4}, 0.0f};
  HostTensor<int32_t> positions = IntTensor({3}), slots = IntTensor({17});
  RopeTable rope{.dim = 4, .inverse_frequency = {0.5f, 0.1f}};

  void Run() {
    ThreadContext context;
    RefQkNormRopeCacheWrite(QkNormRopeCacheWriteOp<Tensor>{.qkv = qkv.view(),
                                                           .positions = positions.view(),
                                                           .slots = slots.view(),
                                                           .cache = cache.view(),
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
  const Tensor cache = c.cache.view();
  EXPECT_EQ(c.cache.values[static_cast<size_t>(CacheIndex(cache, 17, 0, 0))], c.qkv.values[4]);
  EXPECT_EQ(c.cache.values[static_cast<size_t>(CacheIndex(cache, 17, 1, 0)) + 3], 12);
  EXPECT_EQ(CacheIndex(cache, 17, 1, 0), 128 + 64 + 4);
  RopeCase unwritten;
  unwritten.slots.values[0] = -1;
  unwritten.Run();
  EXPECT_EQ(unwritten.cache.values, Floats(256, 0.0f));
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

// Two heads share one kv head of dimension 1: a score is q * k, so the weights are known.
struct PagedCase {
  HostTensor<float> qkv{{1, 4}, Floats{1, 0, 99, 99}}, out{{1, 2}, 0.0f}, cache{{3, 2, 2, 1, 1}, 7777.0f};
  HostTensor<int32_t> cu_q = IntTensor({0, 1}), seq_len = IntTensor({3}), table{{1, 2}, std::vector<int32_t>{2, 0}};

  PagedCase() {
    const float keys[] = {0, std::log(2.0f), std::log(3.0f)}, values[] = {10, 20, 40};
    const int64_t slots[] = {4, 5, 0};
    for (int p = 0; p < 3; ++p) {
      cache.values[static_cast<size_t>(CacheIndex(cache.view(), slots[p], 0, 0))] = keys[p];
      cache.values[static_cast<size_t>(CacheIndex(cache.view(), slots[p], 1, 0))] = values[p];
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
                                               .heads = 2,
                                               .kv_heads = 1,
                                               .head_dim = 1,
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
  EXPECT_FLOAT_EQ(c.out.values[1], (10 + 20 + 40) / 3.0f);
}

TEST(RefPagedAttention, AWindowSeesItsLastPositionsOnly) {
  PagedCase c;
  c.Run(2);
  EXPECT_FLOAT_EQ(c.out.values[0], (2 * 20 + 3 * 40) / 5.0f);
  EXPECT_FLOAT_EQ(c.out.values[1], 30);
}

TEST(RefPagedAttention, ASoftcapBendsTheScaledScores) {
  PagedCase c;
  c.Run(0, 2, 0.5f);
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
