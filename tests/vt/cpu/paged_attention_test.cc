// The cpu paged attention against the plain one, and its independence of batch, chunk and split.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/check.h"
#include "tests/vt/kernel_test_util.h"
#include "vt/cpu/kernels.h"
#include "vt/ref/cache.h"
#include "vt/ref/kernels.h"

namespace vt {
namespace {

using testing::HostTensor;
using testing::MaxRelativeError;
using testing::RandomTensor;
using testing::ThreadContext;

struct Shape {
  int heads = 1, kv_heads = 1, head_dim = 16, block_size = 16, window = 0;
  float softcap = 0;
  DType kv = DType::kF32;
};

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2, DType::kI8};

// Whole numbers of 16 bits stand for queries and weights where the cache holds i8.
double Tolerance(DType kv) { return kv == DType::kI8 ? 6e-4 : 5e-6; }

// One sequence of a step: `queries` new tokens at the end of `length`.
struct Sequence {
  int length = 0, queries = 0;
  uint32_t seed = 1;  // of its queries, keys and values: the same seed gives the same sequence in any batch
};

// Keys and values of a sequence's positions, and the queries of all positions, from its seed.
struct Content {
  HostTensor<float> rows;  // [length, (heads + 2 kv_heads) * head_dim]
  Content(const Shape& shape, const Sequence& sequence)
      : rows(RandomTensor({sequence.length, int64_t{shape.heads + 2 * shape.kv_heads} * shape.head_dim},
                          sequence.seed)) {}
};

// A step over a cache whose unused parts are NaN, blocks in shuffled order.
class Step {
 public:
  Step(const Shape& shape, std::vector<Sequence> sequences, uint32_t shuffle = 7)
      : shape_(shape), page_{shape.kv, shape.block_size, shape.kv_heads, shape.head_dim} {
    int blocks = 1, row_blocks = 1;
    for (const Sequence& s : sequences) {
      const int needed = (s.length + shape.block_size - 1) / shape.block_size;
      blocks += needed, row_blocks = std::max(row_blocks, needed), tokens_ += s.queries;
    }
    cache_ = {{blocks, page_.bytes()}, uint8_t{0xff}};  // NaN in all types, and as a scale
    const int64_t columns = int64_t{shape.heads + 2 * shape.kv_heads} * shape.head_dim;
    qkv_ = {{tokens_, columns}, 0.0f};
    out_ = {{tokens_, int64_t{shape.heads} * shape.head_dim}, NAN};
    table_ = {{static_cast<int64_t>(sequences.size()), row_blocks}, -1};
    cu_q_ = {{static_cast<int64_t>(sequences.size()) + 1}, 0};
    seq_len_ = {{static_cast<int64_t>(sequences.size())}, 0};
    std::vector<int> order(static_cast<size_t>(blocks));
    for (int i = 0; i < blocks; ++i) order[static_cast<size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(shuffle));
    int token = 0;
    for (size_t s = 0; s < sequences.size(); ++s) {
      Add(s, sequences[s], row_blocks, order, token);
      token += sequences[s].queries;
      cu_q_.values[s + 1] = token;
    }
  }

  PagedAttentionOp<Tensor> Bind() {
    return {.qkv = qkv_.view(),
            .cache = cache_.view(),
            .cu_q = cu_q_.view(),
            .seq_len = seq_len_.view(),
            .block_table = table_.view(),
            .out = out_.view(),
            .kv_dtype = shape_.kv,
            .block_size = shape_.block_size,
            .heads = shape_.heads,
            .kv_heads = shape_.kv_heads,
            .head_dim = shape_.head_dim,
            .window = shape_.window,
            .scale = 1 / std::sqrt(static_cast<float>(shape_.head_dim)),
            .softcap = shape_.softcap};
  }
  std::vector<float> RunRef() {
    ThreadContext context;
    std::fill(out_.values.begin(), out_.values.end(), NAN);
    RefPagedAttention(Bind(), context);
    return out_.values;
  }
  std::vector<float> RunCpu(KernelContext& context) {
    std::fill(out_.values.begin(), out_.values.end(), NAN);
    CpuPagedAttention(Bind(), context);
    return out_.values;
  }
  std::vector<int32_t>& table() { return table_.values; }
  // Writes a token once more, with this as the last element of its key or value.
  void Spoil(size_t sequence, int position, KvKind kind, float with) {
    std::vector<float> rows[2];
    for (std::vector<float>& row : rows) row.assign(static_cast<size_t>(shape_.head_dim), 0.5f);
    rows[static_cast<int>(kind)].back() = with;
    const int64_t block = table_.values[sequence * static_cast<size_t>(table_.shape[1]) +
                                        static_cast<size_t>(position / shape_.block_size)];
    CacheView(cache_.view(), page_)
        .Store(block * shape_.block_size + position % shape_.block_size, 0, rows[0].data(), rows[1].data());
  }

 private:
  void Add(size_t s, const Sequence& sequence, int row_blocks, std::vector<int>& order, int token) {
    Content content(shape_, sequence);
    const int64_t columns = qkv_.shape[1], d = shape_.head_dim;
    seq_len_.values[s] = sequence.length;
    const int first = sequence.length - sequence.queries;
    std::copy_n(content.rows.values.begin() + first * columns, sequence.queries * columns,
                qkv_.values.begin() + token * columns);
    for (int p = 0; p < sequence.length; ++p) {
      int32_t& block = table_.values[s * static_cast<size_t>(row_blocks) + static_cast<size_t>(p / shape_.block_size)];
      if (p % shape_.block_size == 0) block = order.back(), order.pop_back();
      const float* kv = content.rows.values.data() + p * columns + shape_.heads * d;
      for (int h = 0; h < shape_.kv_heads; ++h)
        CacheView(cache_.view(), page_)
            .Store(int64_t{block} * shape_.block_size + p % shape_.block_size, h, kv + h * d,
                   kv + (shape_.kv_heads + h) * d);
    }
  }

  Shape shape_;
  KvPage page_;
  int64_t tokens_ = 0;
  HostTensor<float> qkv_, out_;
  HostTensor<uint8_t> cache_;
  HostTensor<int32_t> table_, cu_q_, seq_len_;
};

// A context that does not wipe scratch, for many calls.
class CpuPagedAttentionTest : public ::testing::TestWithParam<Isa> {
 protected:
  ThreadContext serial_{GetParam(), 1}, threaded_{GetParam(), 3};

  void ExpectEqualsPlain(const Shape& shape, const std::vector<Sequence>& sequences) {
    Step step(shape, sequences);
    const std::vector<float> expected = step.RunRef();
    for (ThreadContext* context : {&serial_, &threaded_})
      EXPECT_LT(MaxRelativeError(step.RunCpu(*context), expected, 0.2), Tolerance(shape.kv))
          << "heads " << shape.heads << "/" << shape.kv_heads << " d " << shape.head_dim << " block "
          << shape.block_size << " window " << shape.window << " softcap " << shape.softcap << " "
          << DTypeName(shape.kv);
  }
};

TEST_P(CpuPagedAttentionTest, EqualsThePlainOneAtEveryHeadDim) {
  for (int d = 16; d <= 256; d += 8)
    for (DType kv : kTypes)
      ExpectEqualsPlain({.heads = 2, .kv_heads = 1, .head_dim = d, .kv = kv}, {{37, 5, 1}, {20, 1, 2}});
}

TEST_P(CpuPagedAttentionTest, EqualsThePlainOneForEveryGroup) {
  for (int group = 1; group <= 9; ++group)
    for (int kv_heads : {1, 3})
      for (DType kv : kTypes)
        ExpectEqualsPlain({.heads = group * kv_heads, .kv_heads = kv_heads, .head_dim = 24, .kv = kv},
                          {{45, 14, 1}, {33, 1, 2}, {70, 70, 3}});
}

TEST_P(CpuPagedAttentionTest, EqualsThePlainOneForAGroupLargerThanATile) {
  for (DType kv : kTypes) ExpectEqualsPlain({.heads = 100, .kv_heads = 1, .head_dim = 16, .kv = kv}, {{40, 3, 1}});
}

TEST_P(CpuPagedAttentionTest, EqualsThePlainOneAroundBlockAndRangeEdges) {
  for (int block_size : {16, 32, 48})
    for (int length : {1, 15, 16, 17, 31, 33, 48, 49, 255, 256, 257, 513})
      for (DType kv : kTypes) {
        Shape shape{.heads = 3, .kv_heads = 1, .head_dim = 16, .block_size = block_size, .kv = kv};
        ExpectEqualsPlain(shape, {{length, 1, 1}});
        if (length < 256 || kv == DType::kBF16 || kv == DType::kI8) ExpectEqualsPlain(shape, {{length, length, 2}});
      }
}

TEST_P(CpuPagedAttentionTest, EqualsThePlainOneInMixedBatches) {
  for (int window : {0, 1, 15, 16, 17, 100, 256, 300})
    for (float softcap : {0.0f, 2.0f})
      ExpectEqualsPlain({.heads = 4,
                         .kv_heads = 2,
                         .head_dim = 40,
                         .block_size = 32,
                         .window = window,
                         .softcap = softcap,
                         .kv = kTypes[(static_cast<size_t>(window) + (softcap > 0 ? 3 : 0)) % std::size(kTypes)]},
                        {{300, 1, 1},
                         {17, 17, 2},
                         {260, 9, 3},
                         {1, 1, 4},
                         {512, 1, 5},
                         {129, 64, 6},
                         {16, 3, 7},
                         {256, 256, 8},
                         {600, 100, 9}});
}

TEST_P(CpuPagedAttentionTest, SkipsSequencesWithoutQueries) {
  ExpectEqualsPlain({.heads = 2, .kv_heads = 1}, {{30, 0, 1}, {20, 4, 2}, {16, 0, 3}});
}

TEST_P(CpuPagedAttentionTest, ASequenceIsBitEqualAloneAndInABatch) {
  for (const DType kv : kTypes)
    for (Shape shape : {Shape{.heads = 9, .kv_heads = 3, .head_dim = 64},
                        Shape{.heads = 4, .kv_heads = 1, .head_dim = 256, .window = 300}}) {
      shape.kv = kv;
      Step alone(shape, {{520, 1, 1}}, 3);
      Step batched(shape, {{40, 20, 2}, {520, 1, 1}, {300, 1, 3}, {130, 120, 4}}, 9);
      const std::vector<float> expected = alone.RunCpu(threaded_), got = batched.RunCpu(threaded_);
      const size_t row = static_cast<size_t>(shape.heads * shape.head_dim);
      EXPECT_EQ(0, std::memcmp(expected.data(), got.data() + 20 * row, row * sizeof(float)));
      EXPECT_EQ(expected, alone.RunCpu(serial_)) << "split over workers or not";
    }
}

// The rows of the positions [first, length) of a sequence, computed in chunks of `chunk` queries.
std::vector<float> InChunks(const Shape& shape, int first, int length, int chunk, KernelContext& context) {
  std::vector<float> rows;
  for (int begin = first; begin < length; begin += chunk) {
    const int end = std::min(length, begin + chunk);
    // The same seed: the first `end` positions hold the same values whatever the length.
    Step step(shape, {{end, end - begin, 1}}, static_cast<uint32_t>(begin));
    const std::vector<float> out = step.RunCpu(context);
    rows.insert(rows.end(), out.begin(), out.end());
  }
  return rows;
}

TEST_P(CpuPagedAttentionTest, APromptIsBitEqualWholeInChunksOfFiveAndTokenByToken) {
  for (const DType kv : kTypes)
    for (Shape shape : {Shape{.heads = 3, .kv_heads = 1, .head_dim = 64, .block_size = 48},
                        Shape{.heads = 5, .kv_heads = 1, .head_dim = 24, .window = 100, .softcap = 3}})
      for (const auto& [first, length] : {std::pair{0, 35}, {245, 270}}) {  // the second crosses the end of a range
        shape.kv = kv;
        std::vector<float> whole = InChunks(shape, 0, length, length, threaded_);
        whole.erase(whole.begin(), whole.begin() + int64_t{first} * shape.heads * shape.head_dim);
        EXPECT_EQ(whole, InChunks(shape, first, length, 5, serial_)) << length;
        EXPECT_EQ(whole, InChunks(shape, first, length, 1, threaded_)) << length;
      }
}

TEST_P(CpuPagedAttentionTest, LongDecodesAreSharedAmongTheWorkers) {
  for (const DType kv : kTypes) {
    Step step({.heads = 3, .kv_heads = 1, .head_dim = 64, .kv = kv}, {{1500, 1, 1}});
    const std::vector<float> alone = step.RunCpu(serial_);
    EXPECT_EQ(serial_.barriers(), 0);
    const int64_t before = threaded_.barriers();
    EXPECT_EQ(alone, step.RunCpu(threaded_)) << DTypeName(kv);
    EXPECT_GT(threaded_.barriers(), before);
    EXPECT_LT(MaxRelativeError(alone, step.RunRef(), 0.2), Tolerance(kv)) << DTypeName(kv);
  }
}

TEST_P(CpuPagedAttentionTest, WhoSeesATokenWithNanGetsNanAndNobodyElse) {
  for (const DType kv : kTypes)
    for (const KvKind kind : {KvKind::kKey, KvKind::kValue})
      for (const int heads : {1, 9}) {
        Step step({.heads = heads, .kv_heads = 1, .head_dim = 24, .kv = kv}, {{40, 2, 1}, {40, 2, 2}});
        step.Spoil(0, 20, kind, NAN);
        const std::vector<float> out = step.RunCpu(serial_);
        const auto middle = out.begin() + 2 * heads * 24;
        EXPECT_TRUE(std::any_of(out.begin(), middle, [](float x) { return std::isnan(x); })) << DTypeName(kv);
        EXPECT_TRUE(std::none_of(middle, out.end(), [](float x) { return std::isnan(x); })) << DTypeName(kv);
      }
}

TEST_P(CpuPagedAttentionTest, EightBitFloatsSaturateAndI8TurnsInfinityIntoNan) {
  for (const DType kv : {DType::kF8E4M3, DType::kF8E5M2, DType::kI8}) {
    Step step({.heads = 1, .kv_heads = 1, .head_dim = 24, .kv = kv}, {{40, 1, 1}});
    step.Spoil(0, 20, KvKind::kValue, INFINITY);
    const std::vector<float> out = step.RunCpu(serial_), expected = step.RunRef();
    EXPECT_EQ(std::isnan(out.back()), kv == DType::kI8);
    if (kv != DType::kI8) {
      EXPECT_LT(MaxRelativeError(out, expected, 0.2), 5e-6);
    }
  }
}

TEST_P(CpuPagedAttentionTest, BlocksBehindTheWindowMayBeGone) {
  const Shape shape{.heads = 2, .kv_heads = 1, .window = 33};
  Step step(shape, {{300, 20, 1}});
  const std::vector<float> expected = step.RunCpu(serial_);
  // Queries start at position 280, the oldest key is 248, in block 15.
  std::fill_n(step.table().begin(), 15, -1);
  EXPECT_EQ(step.RunCpu(serial_), expected);
}

TEST_P(CpuPagedAttentionTest, RefusesAHeadDimItHasNoCodeFor) {
  Step step({.heads = 1, .kv_heads = 1, .head_dim = 20}, {{4, 4, 1}});
  EXPECT_THROW(step.RunCpu(serial_), base::InternalError);
}

// Those of the other kernels, and VNNI, which multiplies i8 with instructions of its own.
std::vector<Isa> Isas() {
  std::vector<Isa> isas = testing::TestIsas();
  if (isas.back() == Isa::kAvx512 && __builtin_cpu_supports("avx512vnni")) isas.push_back(Isa::kAvx512Vnni);
  return isas;
}

INSTANTIATE_TEST_SUITE_P(, CpuPagedAttentionTest, ::testing::ValuesIn(Isas()), [](const auto& info) {
  return std::string(info.param == Isa::kAvx2 ? "Avx2" : info.param == Isa::kAvx512 ? "Avx512" : "Avx512Vnni");
});

}  // namespace
}  // namespace vt
