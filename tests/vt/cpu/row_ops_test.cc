// The cpu row kernels against the plain ones, under every instruction set of this machine.
#include <gtest/gtest.h>

#include <cmath>

#include "base/check.h"
#include "tests/vt/kernel_test_util.h"
#include "vt/cpu/kernels.h"
#include "vt/ref/cache.h"
#include "vt/ref/kernels.h"

namespace vt {
namespace {

using testing::HostTensor;
using testing::IntTensor;
using testing::MaxRelativeError;
using testing::RandomTensor;
using testing::ThreadContext;

// Widths around the vectors' 8 and 16 lanes.
const std::vector<int64_t> kWidths = {1, 7, 8, 9, 15, 16, 17, 31, 33, 100, 576, 641};

class CpuRowOps : public ::testing::TestWithParam<Isa> {
 protected:
  ThreadContext serial_{GetParam(), 1}, threaded_{GetParam(), 3};
};

struct AddNormCase {
  HostTensor<float> residual, branch, branch_weight, weight, out;
  AddNormOp<Tensor> op = {};
  AddNormCase(int64_t rows, int64_t columns)
      : residual(RandomTensor({rows, columns}, 1)),
        branch(RandomTensor({rows, columns}, 2, 3)),
        branch_weight(RandomTensor({columns}, 3)),
        weight(RandomTensor({columns}, 4)),
        out({rows, columns}, NAN) {
    op = {.branch_norm = NormKind::kRmsOnePlus, .norm = NormKind::kRms, .branch_eps = 1e-5f, .scale = 0.7f};
  }
  AddNormOp<Tensor> Bind() {
    op.residual = residual.view(), op.branch = branch.view(), op.branch_weight = branch_weight.view();
    op.weight = weight.view(), op.out = out.view();
    return op;
  }
};

TEST_P(CpuRowOps, AddNormWithBothNormsEqualsThePlainOne) {
  for (int64_t columns : kWidths)
    for (NormKind kind : {NormKind::kRms, NormKind::kRmsOnePlus}) {
      AddNormCase expected(5, columns), got(5, columns);
      expected.op.norm = got.op.norm = kind;
      RefAddNorm(expected.Bind(), serial_);
      CpuAddNorm(got.Bind(), threaded_);
      EXPECT_LT(MaxRelativeError(got.residual.values, expected.residual.values, 0.1), 2e-6) << columns;
      EXPECT_LT(MaxRelativeError(got.out.values, expected.out.values, 0.1), 4e-6) << columns;
    }
}

TEST_P(CpuRowOps, AddNormWithoutItsOptionalOperandsEqualsThePlainOne) {
  for (int absent = 0; absent < 16; ++absent) {
    AddNormCase expected(4, 33), got(4, 33);
    for (AddNormCase* c : {&expected, &got}) {
      AddNormOp<Tensor> op = c->Bind();
      if (absent & 1) op.branch = {};
      if (absent & 2) op.branch_weight = {}, op.branch_norm = NormKind::kNone;
      if (absent & 4) op.weight = {};
      if (absent & 8) op.out = {};
      c == &expected ? RefAddNorm(op, serial_) : CpuAddNorm(op, serial_);
    }
    EXPECT_LT(MaxRelativeError(got.residual.values, expected.residual.values, 0.1), 2e-6) << absent;
    if (!(absent & 8)) {
      EXPECT_LT(MaxRelativeError(got.out.values, expected.out.values, 0.1), 4e-6) << absent;
    }
  }
}

TEST_P(CpuRowOps, AddNormOfARowIsBitEqualAloneAndAmongOthers) {
  AddNormCase many(300, 129), alone(1, 129);
  std::copy_n(many.residual.values.begin() + 7 * 129, 129, alone.residual.values.begin());
  std::copy_n(many.branch.values.begin() + 7 * 129, 129, alone.branch.values.begin());
  CpuAddNorm(many.Bind(), threaded_);
  CpuAddNorm(alone.Bind(), serial_);
  EXPECT_GT(threaded_.barriers(), 0);
  EXPECT_EQ(0, std::memcmp(alone.out.values.data(), many.out.values.data() + 7 * 129, 129 * sizeof(float)));
}

TEST_P(CpuRowOps, GatedActEqualsThePlainOne) {
  for (Activation act : {Activation::kSilu, Activation::kGeluTanh, Activation::kGelu})
    for (int64_t n : kWidths) {
      HostTensor<float> x = RandomTensor({3, 2 * n}, 5, 3), expected({3, n}, NAN), got({3, n}, NAN);
      RefGatedAct(GatedActOp<Tensor>{.x = x.view(), .out = expected.view(), .act = act}, serial_);
      CpuGatedAct(GatedActOp<Tensor>{.x = x.view(), .out = got.view(), .act = act}, serial_);
      // Far in the tail of gelu the argument's own rounding is multiplied; values there are below 1e-4.
      EXPECT_LT(MaxRelativeError(got.values, expected.values, 1e-4), 1e-6) << n;
    }
}

TEST_P(CpuRowOps, GatedActHoldsAtTheEndsOfTheRange) {
  HostTensor<float> x({1, 16}, 1.0f), out({1, 8}, NAN);
  const float gates[] = {-200, -100, -88, 0, 88, 200, -INFINITY, NAN};
  std::copy_n(gates, 8, x.values.begin());
  for (Activation act : {Activation::kSilu, Activation::kGeluTanh}) {
    CpuGatedAct(GatedActOp<Tensor>{.x = x.view(), .out = out.view(), .act = act}, serial_);
    EXPECT_EQ(out.values[0], 0);
    EXPECT_NEAR(out.values[1], 0, 1e-30);
    EXPECT_NEAR(out.values[2], 0, 1e-30);
    EXPECT_EQ(out.values[3], 0);
    EXPECT_EQ(out.values[4], 88);
    EXPECT_EQ(out.values[5], 200);
    EXPECT_TRUE(std::isnan(out.values[7]));
  }
}

TEST_P(CpuRowOps, SoftcapEqualsThePlainOneFromTinyToLarge) {
  HostTensor<float> x({7, 1001}, 0.0f);
  for (size_t i = 0; i < x.values.size(); ++i)
    x.values[i] = (i % 2 ? -1.0f : 1.0f) * std::pow(10.0f, -6 + 9 * static_cast<float>(i) / 7007);
  for (float cap : {0.0f, 30.0f, 0.5f}) {
    HostTensor<float> expected = x, got = x;
    RefSoftcap(SoftcapOp<Tensor>{.x = expected.view(), .scale = 0.37f, .cap = cap}, serial_);
    CpuSoftcap(SoftcapOp<Tensor>{.x = got.view(), .scale = 0.37f, .cap = cap}, threaded_);
    EXPECT_LT(MaxRelativeError(got.values, expected.values, 1e-30), 8e-7) << cap;
  }
}

TEST_P(CpuRowOps, GatherRowsEqualsThePlainOne) {
  HostTensor<float> x = RandomTensor({40, 700}, 6), expected({50, 700}, NAN), got({50, 700}, NAN);
  HostTensor<int32_t> indices = IntTensor(std::vector<int32_t>(50));
  for (int i = 0; i < 50; ++i) indices.values[static_cast<size_t>(i)] = i * 7 % 40;
  RefGatherRows(GatherRowsOp<Tensor>{.x = x.view(), .indices = indices.view(), .out = expected.view()}, serial_);
  CpuGatherRows(GatherRowsOp<Tensor>{.x = x.view(), .indices = indices.view(), .out = got.view()}, threaded_);
  EXPECT_EQ(threaded_.barriers(), 1);
  EXPECT_EQ(got.values, expected.values);
}

TEST_P(CpuRowOps, GatherRowsRefusesAnIndexPastTheRows) {
  HostTensor<float> x({2, 3}, 0.0f), out({1, 3}, 0.0f);
  HostTensor<int32_t> indices = IntTensor({2});
  EXPECT_THROW(
      CpuGatherRows(GatherRowsOp<Tensor>{.x = x.view(), .indices = indices.view(), .out = out.view()}, serial_),
      base::InternalError);
}

struct RowMaxCase {
  HostTensor<float> x, max;
  HostTensor<int32_t> index;
  explicit RowMaxCase(HostTensor<float> values)
      : x(std::move(values)), max({x.shape[0]}, -5.0f), index({x.shape[0]}, -5) {}
  RowMaxOp<Tensor> Bind() { return {.x = x.view(), .max = max.view(), .index = index.view()}; }
};

// Both kernels on the same rows; NaN equals NaN.
void ExpectTheSameMaxima(HostTensor<float> x, KernelContext& context) {
  RowMaxCase expected(x), got(std::move(x));
  RefRowMax(expected.Bind(), context);
  CpuRowMax(got.Bind(), context);
  ASSERT_EQ(got.index.values, expected.index.values) << got.x.shape[1];
  for (size_t r = 0; r < got.max.values.size(); ++r) {
    if (std::isnan(expected.max.values[r]))
      ASSERT_TRUE(std::isnan(got.max.values[r])) << r;
    else
      ASSERT_EQ(got.max.values[r], expected.max.values[r]) << r;
  }
}

TEST_P(CpuRowOps, RowMaxEqualsThePlainOneAtEveryWidth) {
  std::vector<int64_t> widths = kWidths;
  for (int64_t width : {63, 64, 65, 2047, 2048, 2049, 4095, 4096, 4097, 6150, 40000}) widths.push_back(width);
  for (int64_t width : widths) ExpectTheSameMaxima(RandomTensor({3, width}, 21), threaded_);
}

TEST_P(CpuRowOps, RowMaxFindsTheFirstOfEqualsWhereverTheyStand) {
  // Around the ends of vectors, of unrolled steps, of blocks, of ranges, and of the row.
  const std::vector<int64_t> places = {0,    1,    7,    8,    15,   16,   63,   64,  2047,
                                       2048, 4095, 4096, 4097, 8191, 8192, 9998, 9999};
  for (int64_t first : places)
    for (int64_t second : places) {
      HostTensor<float> x({1, 10000}, -1.0f);
      x.values[static_cast<size_t>(first)] = x.values[static_cast<size_t>(second)] = 3;
      ExpectTheSameMaxima(std::move(x), threaded_);
    }
}

TEST_P(CpuRowOps, RowMaxTellsOfANanWhereverItStands) {
  for (int64_t width : {1, 5, 17, 100, 10000})
    for (int64_t place : {int64_t{0}, width / 3, width / 2, width - 2, width - 1}) {
      HostTensor<float> x = RandomTensor({2, width}, 22);
      x.values[static_cast<size_t>(width + std::max<int64_t>(place, 0))] = NAN;
      ExpectTheSameMaxima(std::move(x), threaded_);
    }
}

TEST_P(CpuRowOps, RowMaxTakesInfinitiesAndZerosOfBothSigns) {
  for (int64_t width : {3, 33, 5000}) {
    HostTensor<float> x({4, width}, -INFINITY);
    float* rows = x.values.data();
    rows[width + width / 2] = INFINITY, rows[width + width - 1] = INFINITY;
    rows[2 * width + 1] = -0.0f, rows[2 * width + 2] = 0.0f;
    rows[3 * width + 1] = 0.0f, rows[3 * width + 2] = -0.0f;
    ExpectTheSameMaxima(std::move(x), threaded_);
  }
}

TEST_P(CpuRowOps, RowMaxSpreadsOneRowOverTheWorkers) {
  ExpectTheSameMaxima(RandomTensor({1, 60000}, 23), threaded_);
  EXPECT_EQ(threaded_.barriers(), 1);
}

struct QkCase {
  int64_t tokens;
  int heads, kv_heads, head_dim;
  HostTensor<float> qkv, q_norm, k_norm;
  HostTensor<uint8_t> cache;
  HostTensor<int32_t> positions, slots;
  RopeTable rope = {};
  NormKind norm = NormKind::kNone;
  DType kv_dtype = DType::kF32;

  QkCase(int64_t t, int h, int kv, int d, int rope_dim)
      : tokens(t),
        heads(h),
        kv_heads(kv),
        head_dim(d),
        qkv(RandomTensor({t, int64_t{h + 2 * kv} * d}, 11)),
        q_norm(RandomTensor({d}, 12)),
        k_norm(RandomTensor({d}, 13)),
        cache({9, Page(DType::kF32).bytes()}, uint8_t{0x55}),
        positions({t}, 0),
        slots({t}, -1) {
    rope.dim = rope_dim;
    for (int i = 0; i < rope_dim / 2; ++i) rope.inverse_frequency.push_back(std::pow(10000.0f, -2.0f * i / rope_dim));
    for (int64_t i = 0; i < t; ++i) {
      positions.values[static_cast<size_t>(i)] = static_cast<int32_t>(i * i * 37);
      slots.values[static_cast<size_t>(i)] = i % 5 == 3 ? -1 : static_cast<int32_t>((i * 29 + 3) % 144);
    }
  }
  KvPage Page(DType dtype) const { return {dtype, 16, kv_heads, head_dim}; }
  Tensor Cache() {
    Tensor view = cache.view();
    view.shape[1] = view.stride[0] = Page(kv_dtype).bytes();
    return view;
  }
  QkNormRopeCacheWriteOp<Tensor> Bind() {
    return {.qkv = qkv.view(),
            .q_norm = norm == NormKind::kNone ? Tensor{} : q_norm.view(),
            .k_norm = norm == NormKind::kNone ? Tensor{} : k_norm.view(),
            .positions = positions.view(),
            .slots = slots.view(),
            .cache = Cache(),
            .kv_dtype = kv_dtype,
            .block_size = 16,
            .heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .qk_norm = norm,
            .rope = rope.dim > 0 ? &rope : nullptr};
  }
};

TEST_P(CpuRowOps, QkNormRopeEqualsThePlainOne) {
  struct Shape {
    int heads, kv_heads, head_dim, rope_dim;
  };
  for (const Shape& s : {Shape{9, 3, 64, 64}, Shape{4, 1, 256, 256}, Shape{2, 2, 24, 24}, Shape{3, 1, 40, 16},
                         Shape{1, 1, 80, 0}, Shape{2, 1, 16, 14}})
    for (NormKind norm : {NormKind::kNone, NormKind::kRms, NormKind::kRmsOnePlus})
      for (bool interleaved : {false, true}) {
        QkCase expected(11, s.heads, s.kv_heads, s.head_dim, s.rope_dim), got = expected;
        expected.norm = got.norm = norm;
        expected.rope.interleaved = got.rope.interleaved = interleaved;
        expected.rope.attention_factor = got.rope.attention_factor = 1.2f;
        RefQkNormRopeCacheWrite(expected.Bind(), serial_);
        CpuQkNormRopeCacheWrite(got.Bind(), serial_);
        EXPECT_LT(MaxRelativeError(got.qkv.values, expected.qkv.values, 1), 1e-6) << s.head_dim;
      }
}

constexpr DType kCacheTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2, DType::kI8};

// What the plain writer makes of the rows that the kernel has rotated, byte for byte.
TEST_P(CpuRowOps, QkNormRopeRoundsIntoTheCacheAsThePlainOne) {
  struct Shape {
    int heads, kv_heads, head_dim;
  };
  for (const Shape& s : {Shape{3, 1, 24}, Shape{9, 3, 64}, Shape{2, 2, 80}, Shape{4, 1, 256}})
    for (const DType dtype : kCacheTypes) {
      QkCase got(40, s.heads, s.kv_heads, s.head_dim, 16);
      for (size_t i = 0; i < got.qkv.values.size(); i += 7)
        got.qkv.values[i] *= std::exp2(static_cast<float>(i % 41) - 25);
      got.kv_dtype = dtype;
      QkCase expected = got;
      CpuQkNormRopeCacheWrite(got.Bind(), serial_);
      const CacheView view(expected.Cache(), expected.Page(dtype));
      for (int64_t t = 0; t < got.tokens; ++t) {
        const float* keys = got.qkv.values.data() + (t * (s.heads + 2 * s.kv_heads) + s.heads) * s.head_dim;
        if (const int32_t slot = got.slots.values[static_cast<size_t>(t)]; slot >= 0)
          for (int h = 0; h < s.kv_heads; ++h)
            view.Store(slot, h, keys + h * s.head_dim, keys + (s.kv_heads + h) * s.head_dim);
      }
      EXPECT_EQ(got.cache.values, expected.cache.values) << DTypeName(dtype) << " " << s.head_dim;
    }
}

TEST_P(CpuRowOps, QkNormRopeMakesTheKeyOfATokenWithNanUnreadable) {
  for (const DType dtype : kCacheTypes)
    for (const int place : {3 * 24 + 5, 4 * 24 + 5}) {  // in the key, in the value
      QkCase c(1, 3, 1, 24, 0);
      c.kv_dtype = dtype;
      c.slots.values[0] = 18;
      c.qkv.values[static_cast<size_t>(place)] = NAN;
      CpuQkNormRopeCacheWrite(c.Bind(), serial_);
      const CacheView view(c.Cache(), c.Page(dtype));
      bool nan = false;
      for (int i = 0; i < 24; ++i) nan = nan || std::isnan(view.Load(18, KvKind::kKey, 0, i));
      const bool by_value = dtype != DType::kI8 && std::isnan(view.Load(18, KvKind::kValue, 0, 5));
      EXPECT_TRUE(nan || by_value) << DTypeName(dtype) << " " << place;
      EXPECT_TRUE(nan || (dtype != DType::kI8 && dtype != DType::kF8E4M3)) << DTypeName(dtype) << " " << place;
    }
}

TEST_P(CpuRowOps, ASlotBelowZeroWritesNothing) {
  for (const DType dtype : kCacheTypes) {
    QkCase c(6, 3, 1, 40, 40);
    c.kv_dtype = dtype;
    std::fill(c.slots.values.begin(), c.slots.values.end(), -1);
    const QkCase before = c;
    CpuQkNormRopeCacheWrite(c.Bind(), serial_);
    EXPECT_EQ(c.cache.values, before.cache.values);
    EXPECT_NE(c.qkv.values, before.qkv.values);
  }
}

TEST_P(CpuRowOps, QkNormRopeOfATokenIsBitEqualAloneAndAmongOthers) {
  QkCase many(60, 9, 3, 64, 64), alone(1, 9, 3, 64, 64);
  many.norm = alone.norm = NormKind::kRms;
  std::copy_n(many.qkv.values.begin() + 37 * 960, 960, alone.qkv.values.begin());
  alone.positions.values[0] = many.positions.values[37];
  CpuQkNormRopeCacheWrite(many.Bind(), threaded_);
  CpuQkNormRopeCacheWrite(alone.Bind(), serial_);
  EXPECT_GT(threaded_.barriers(), 0);
  EXPECT_EQ(0, std::memcmp(alone.qkv.values.data(), many.qkv.values.data() + 37 * 960, 960 * sizeof(float)));
}

INSTANTIATE_TEST_SUITE_P(, CpuRowOps, ::testing::ValuesIn(testing::TestIsas()),
                         [](const auto& info) { return std::string(info.param == Isa::kAvx2 ? "Avx2" : "Avx512"); });

}  // namespace
}  // namespace vt
