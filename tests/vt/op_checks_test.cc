// The preconditions of ops: a well-formed op passes, and each kind of damage is refused with the operand's name.
#include "vt/op_checks.h"

#include <gtest/gtest.h>

#include <string>

#include "base/check.h"
#include "tests/vt/kernel_test_util.h"
#include "vt/weight.h"

namespace vt {
namespace {

using testing::HostTensor;
using testing::IntTensor;

template <class Op>
std::string RefusalOf(const Op& op) {
  try {
    CheckArgs(op);
  } catch (const base::InternalError& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_REFUSED(op, part) EXPECT_NE(RefusalOf(op).find(part), std::string::npos) << "got: " << RefusalOf(op)

// Two heads of 8 over one kv head, three tokens, two blocks of 16; everything in order.
struct Attention {
  HostTensor<float> qkv{{3, 32}, 0.0f}, out{{3, 16}, 0.0f}, norm{{8}, 0.0f};
  HostTensor<uint8_t> cache{{2, 2 * 16 * 8 * 4}, uint8_t{0}};
  HostTensor<int32_t> positions = IntTensor({0, 1, 17}), slots = IntTensor({-1, 5, 31}), cu_q = IntTensor({0, 1, 3}),
                      seq_len = IntTensor({4, 20}), table{{2, 2}, std::vector<int32_t>{1, -1, 0, 1}};
  RopeTable rope{.dim = 4, .inverse_frequency = {1, 0.5f}};

  QkNormRopeCacheWriteOp<Tensor> Write() {
    return {.qkv = qkv.view(),
            .positions = positions.view(),
            .slots = slots.view(),
            .cache = cache.view(),
            .kv_dtype = DType::kF32,
            .block_size = 16,
            .heads = 2,
            .kv_heads = 1,
            .head_dim = 8,
            .rope = &rope};
  }
  PagedAttentionOp<Tensor> Attend() {
    return {.qkv = qkv.view(),
            .cache = cache.view(),
            .cu_q = cu_q.view(),
            .seq_len = seq_len.view(),
            .block_table = table.view(),
            .out = out.view(),
            .kv_dtype = DType::kF32,
            .block_size = 16,
            .heads = 2,
            .kv_heads = 1,
            .head_dim = 8,
            .scale = 1};
  }
};

TEST(OpChecks, WellFormedOpsPass) {
  Attention a;
  EXPECT_EQ(RefusalOf(a.Write()), "");
  EXPECT_EQ(RefusalOf(a.Attend()), "");
}

TEST(OpChecks, AWrongDtypeShapeOrGapIsRefusedByName) {
  Attention a;
  PagedAttentionOp<Tensor> op = a.Attend();
  op.seq_len.dtype = DType::kF32;
  EXPECT_REFUSED(op, "seq_len is f32, not i32");
  op = a.Attend();
  op.out.shape[1] = 15;
  EXPECT_REFUSED(op, "out dimension 1 is 15, not 16");
  op = a.Attend();
  op.qkv.stride[0] = 40;
  EXPECT_REFUSED(op, "qkv is not contiguous");
  op = a.Attend();
  op.cu_q = {};
  EXPECT_REFUSED(op, "cu_q is absent");
  op = a.Attend();
  op.cache.dtype = DType::kF16;
  EXPECT_REFUSED(op, "cache is f16, not u8");
  op = a.Attend();
  op.kv_dtype = DType::kI64;
  EXPECT_REFUSED(op, "the cache holds i64");
  op.kv_dtype = DType::kI8;
  EXPECT_REFUSED(op, "cache dimension 1 is 1024, not 384");
  op = a.Attend();
  op.block_size = 24;
  EXPECT_REFUSED(op, "block size 24");
}

TEST(OpChecks, HeadsThatDoNotDivideAreRefused) {
  Attention a;
  PagedAttentionOp<Tensor> op = a.Attend();
  op.kv_heads = 3;
  EXPECT_REFUSED(op, "2 heads, 3 kv heads");
}

TEST(OpChecks, MetadataThatLeadsOutOfTheCacheIsRefused) {
  Attention a;
  a.table.values[2] = 2;
  EXPECT_REFUSED(a.Attend(), "block_table[1][0] is 2 of 2");
  a.table.values[2] = -1;
  EXPECT_REFUSED(a.Attend(), "block_table[1][0] is -1");
  a = {};
  a.seq_len.values[1] = 33;
  EXPECT_REFUSED(a.Attend(), "sequence 1 of 33 has 2 blocks");
  a = {};
  a.seq_len.values[1] = 1;
  EXPECT_REFUSED(a.Attend(), "sequence 1 of 1 has 2 queries");
  a = {};
  a.cu_q.values[2] = 4;
  EXPECT_REFUSED(a.Attend(), "cu_q spans [0, 4) of 3");
  a = {};
  a.cu_q.values[1] = 3, a.cu_q.values[2] = 2;
  EXPECT_REFUSED(a.Attend(), "has -1 queries");
}

TEST(OpChecks, BlocksBehindEveryWindowMayBeMissing) {
  Attention a;
  a.table.values[2] = -1;
  PagedAttentionOp<Tensor> op = a.Attend();
  op.window = 3;  // queries at 18 and 19 see positions from 16 on
  EXPECT_EQ(RefusalOf(op), "");
  op.window = 4;
  EXPECT_REFUSED(op, "block_table[1][0]");
}

TEST(OpChecks, SlotsPositionsAndRopeAreChecked) {
  Attention a;
  a.slots.values[2] = 32;
  EXPECT_REFUSED(a.Write(), "slots[2] is 32");
  a = {};
  a.positions.values[0] = -1;
  EXPECT_REFUSED(a.Write(), "positions[0] is -1");
  a = {};
  a.rope.dim = 10;
  EXPECT_REFUSED(a.Write(), "rope of 10 elements, head_dim 8");
  a = {};
  a.rope.inverse_frequency.pop_back();
  EXPECT_REFUSED(a.Write(), "rope holds 1 frequencies for 4 elements");
  a = {};
  QkNormRopeCacheWriteOp<Tensor> op = a.Write();
  op.q_norm = a.norm.view();
  EXPECT_REFUSED(op, "qk_norm and its weights must come together");
}

TEST(OpChecks, WeightsMustMatchTheirOperands) {
  HostTensor<float> rows({4, 8}, 0.0f), x({2, 8}, 0.0f), out({2, 4}, 0.0f), embedded({2, 8}, 0.0f);
  HostTensor<int32_t> ids = IntTensor({0, 4});
  PackedWeight weight{.n = 4, .k = 8, .segments = {{.n = 4, .row_bytes = 32, .data = rows.view().data}}};
  LinearOp<Tensor> linear{.x = x.view(), .out = out.view(), .weight = &weight};
  EXPECT_EQ(RefusalOf(linear), "");
  EXPECT_REFUSED((EmbedOp<Tensor>{.ids = ids.view(), .out = embedded.view(), .weight = &weight}), "ids[1] is 4");
  weight.segments[0].n = 3;
  EXPECT_REFUSED(linear, "segments hold 3 rows of 4");
  weight.k = 9;
  EXPECT_REFUSED(linear, "weight is [4, 9], not [4, 8]");
  linear.weight = nullptr;
  EXPECT_REFUSED(linear, "no weight");
}

TEST(OpChecks, RowOpsCheckTheirShapes) {
  HostTensor<float> x({2, 8}, 0.0f), out({2, 3}, 0.0f), weight({8}, 0.0f);
  EXPECT_REFUSED((GatedActOp<Tensor>{.x = x.view(), .out = out.view()}), "x dimension 1 is 8, not 6");
  EXPECT_REFUSED((SoftcapOp<Tensor>{.x = x.view(), .cap = -1}), "cap -1");
  EXPECT_REFUSED((AddNormOp<Tensor>{.residual = x.view(), .branch = out.view()}), "branch dimension 1 is 3, not 8");
  EXPECT_REFUSED((AddNormOp<Tensor>{.residual = x.view(), .weight = weight.view(), .norm = NormKind::kNone}),
                 "weight without a norm");
  HostTensor<int32_t> indices = IntTensor({2, 0});
  EXPECT_REFUSED((GatherRowsOp<Tensor>{.x = x.view(), .indices = indices.view(), .out = x.view()}), "indices[0] is 2");
  HostTensor<float> max({2}, 0.0f), empty({2, 0}, 0.0f);
  EXPECT_EQ(RefusalOf(RowMaxOp<Tensor>{.x = x.view(), .max = max.view(), .index = indices.view()}), "");
  EXPECT_REFUSED((RowMaxOp<Tensor>{.x = x.view(), .max = weight.view(), .index = indices.view()}),
                 "max dimension 0 is 8, not 2");
  EXPECT_REFUSED((RowMaxOp<Tensor>{.x = x.view(), .max = max.view(), .index = max.view()}), "index is f32, not i32");
  EXPECT_REFUSED((LinearRowMaxOp<Tensor>{.x = x.view(), .out = out.view(), .max = max.view(), .index = max.view()}),
                 "no weight");
  EXPECT_REFUSED((RowMaxOp<Tensor>{.x = empty.view(), .max = max.view(), .index = indices.view()}),
                 "rows without columns");
}

TEST(OpChecks, ACausalBatchNeedsAsManyKeysAsQueries) {
  HostTensor<float> q({3, 2, 8}, 0.0f), k({2, 1, 8}, 0.0f), out({3, 2, 8}, 0.0f);
  AttentionOp<Tensor> op{.q = q.view(), .k = k.view(), .v = k.view(), .out = out.view(), .scale = 1, .causal = true};
  EXPECT_REFUSED(op, "3 queries, 2 keys");
  op.causal = false;
  EXPECT_EQ(RefusalOf(op), "");
}

}  // namespace
}  // namespace vt
