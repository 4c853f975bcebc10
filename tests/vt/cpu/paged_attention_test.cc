// The cpu paged attention against the plain one, and its independence of batch, chunk and split.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/check.h"
#include "quant/half.h"
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
  bool bf16 = false;
};

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
  Step(const Shape& shape, std::vector<Sequence> sequences, uint32_t shuffle = 7) : shape_(shape) {
    int blocks = 1, row_blocks = 1;
    for (const Sequence& s : sequences) {
      const int needed = (s.length + shape.block_size - 1) / shape.block_size;
      blocks += needed, row_blocks = std::max(row_blocks, needed), tokens_ += s.queries;
    }
    cache_f32_ = {{blocks, 2, shape.block_size, shape.kv_heads, shape.head_dim}, NAN};
    cache_bf16_ = {cache_f32_.shape, uint16_t{0x7fc0}};
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
            .cache = shape_.bf16 ? cache_bf16_.view() : cache_f32_.view(),
            .cu_q = cu_q_.view(),
            .seq_len = seq_len_.view(),
            .block_table = table_.view(),
            .out = out_.view(),
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
      for (int kind = 0; kind < 2; ++kind)
        for (int h = 0; h < shape_.kv_heads; ++h)
          for (int64_t c = 0; c < d; ++c) {
            const int64_t slot = int64_t{block} * shape_.block_size + p % shape_.block_size;
            const int64_t index = CacheIndex(cache_f32_.view(), slot, kind, h) + c;
            const float value = kv[(kind * shape_.kv_heads + h) * d + c];
            StoreCache(cache_f32_.view(), index, value);
            StoreCache(cache_bf16_.view(), index, value);
          }
    }
  }

  Shape shape_;
  int64_t tokens_ = 0;
  HostTensor<float> qkv_, out_, cache_f32_;
  HostTensor<uint16_t> cache_bf16_;
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
      EXPECT_LT(MaxRelativeError(step.RunCpu(*context), expected, 0.2), 5e-6)
          << "heads " << shape.heads << "/" << shape.kv_heads << " d " << shape.head_dim << " block "
          << shape.block_size << " window " << shape.window << " softcap " << shape.softcap << " bf16 " << shape.bf16;
  }
};

TEST_P(CpuPagedAttentionTest, EqualsThePlainOneAtEveryHeadDim) {
  for (int d = 16; d <= 256; d += 8)
    for (bool bf16 : {false, true})
      ExpectEqualsPlain({.heads = 2, .kv_heads = 1, .head_dim = d, .bf16 = bf16}, {{37, 5, 1}, {20, 1, 2}});
}

TEST_P(CpuPagedAttentionTest, EqualsThePlainOneForEveryGroup) {
  for (int group = 1; group <= 9; ++group)
    for (int kv_heads : {1, 3})
      ExpectEqualsPlain({.heads = group * kv_heads, .kv_heads = kv_heads, .head_dim = 24, .bf16 = group % 2 == 0},
                        {{45, 14, 1}, {33, 1, 2}, {70, 70, 3}});
}

TEST_P(CpuPagedAttentionTest, EqualsThePlainOneForAGroupLargerThanATile) {
  ExpectEqualsPlain({.heads = 100, .kv_heads = 1, .head_dim = 16}, {{40, 3, 1}});
}

TEST_P(CpuPagedAttentionTest, EqualsThePlainOneAroundBlockAndRangeEdges) {
  for (int block_size : {16, 32, 48})
    for (int length : {1, 15, 16, 17, 31, 33, 48, 49, 255, 256, 257, 513}) {
      Shape shape{.heads = 3, .kv_heads = 1, .head_dim = 16, .block_size = block_size, .bf16 = true};
      ExpectEqualsPlain(shape, {{length, 1, 1}});
      ExpectEqualsPlain(shape, {{length, length, 2}});
    }
}

TEST_P(CpuPagedAttentionTest, EqualsThePlainOneInMixedBatches) {
  for (int window : {0, 1, 15, 16, 17, 100, 256, 300})
    for (float softcap : {0.0f, 2.0f})
      ExpectEqualsPlain(
          {.heads = 4, .kv_heads = 2, .head_dim = 40, .block_size = 32, .window = window, .softcap = softcap},
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
  for (const Shape& shape : {Shape{.heads = 9, .kv_heads = 3, .head_dim = 64, .bf16 = true},
                             Shape{.heads = 4, .kv_heads = 1, .head_dim = 256, .window = 300}}) {
    Step alone(shape, {{700, 1, 1}}, 3);
    Step batched(shape, {{40, 20, 2}, {700, 1, 1}, {900, 1, 3}, {300, 290, 4}}, 9);
    const std::vector<float> expected = alone.RunCpu(threaded_), got = batched.RunCpu(threaded_);
    const size_t row = static_cast<size_t>(shape.heads * shape.head_dim);
    EXPECT_EQ(0, std::memcmp(expected.data(), got.data() + 20 * row, row * sizeof(float)));
    EXPECT_EQ(expected, alone.RunCpu(serial_)) << "split over workers or not";
  }
}

// The rows of `sequence` computed in chunks of `chunk` queries.
std::vector<float> InChunks(const Shape& shape, int length, int chunk, KernelContext& context) {
  std::vector<float> rows;
  for (int begin = 0; begin < length; begin += chunk) {
    const int end = std::min(length, begin + chunk);
    // The same seed: the first `end` positions hold the same values whatever the length.
    Step step(shape, {{end, end - begin, 1}}, static_cast<uint32_t>(begin));
    const std::vector<float> out = step.RunCpu(context);
    rows.insert(rows.end(), out.begin(), out.end());
  }
  return rows;
}

TEST_P(CpuPagedAttentionTest, APromptIsBitEqualWholeInChunksOfFiveAndTokenByToken) {
  for (const Shape& shape :
       {Shape{.heads = 3, .kv_heads = 1, .head_dim = 64, .block_size = 48},
        Shape{.heads = 5, .kv_heads = 1, .head_dim = 24, .window = 100, .softcap = 3, .bf16 = true}})
    for (int length : {35, 290}) {
      const std::vector<float> whole = InChunks(shape, length, length, threaded_);
      EXPECT_EQ(whole, InChunks(shape, length, 5, serial_)) << length;
      EXPECT_EQ(whole, InChunks(shape, length, 1, threaded_)) << length;
    }
}

TEST_P(CpuPagedAttentionTest, LongDecodesAreSharedAmongTheWorkers) {
  const Shape shape{.heads = 3, .kv_heads = 1, .head_dim = 64, .bf16 = true};
  Step step(shape, {{3000, 1, 1}});
  const std::vector<float> alone = step.RunCpu(serial_);
  EXPECT_EQ(serial_.barriers(), 0);
  EXPECT_EQ(alone, step.RunCpu(threaded_));
  EXPECT_GT(threaded_.barriers(), 0);
  EXPECT_LT(MaxRelativeError(alone, step.RunRef(), 0.2), 5e-6);
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

INSTANTIATE_TEST_SUITE_P(, CpuPagedAttentionTest, ::testing::ValuesIn(testing::TestIsas()),
                         [](const auto& info) { return std::string(info.param == Isa::kAvx2 ? "Avx2" : "Avx512"); });

}  // namespace
}  // namespace vt
