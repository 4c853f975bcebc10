// Paged attention of one layer: prompts and decodes of the shapes of small served models, on all workers.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "vt/buffer.h"
#include "vt/ops.h"
#include "vt/ref/cache.h"

namespace vt {
namespace {

struct Shape {
  int heads = 0, kv_heads = 0, head_dim = 0, window = 0;
};
constexpr Shape kShapes[] = {{9, 3, 64, 0}, {4, 1, 256, 512}, {32, 8, 128, 0}};

constexpr DType kTypes[] = {DType::kBF16, DType::kF16, DType::kF32, DType::kF8E4M3, DType::kF8E5M2, DType::kI8};

// Layers of a model are attended one after another: by the time a cache is read again, others have pushed it out.
constexpr int64_t kBytesToRotate = 128 << 20;

// Arguments: shape, sequences, length of each, queries of each, type of the cache, and 1 for a cache in memory, 0 for
// one that the last call has left in the processor's caches.
void PagedAttentionLayer(benchmark::State& state) {
  const Shape shape = kShapes[state.range(0)];
  const int64_t sequences = state.range(1), length = state.range(2), queries = state.range(3), block = 32;
  const KvPage page{kTypes[state.range(4)], static_cast<int>(block), shape.kv_heads, shape.head_dim};
  const auto platform = MakePlatform(DeviceType::kCpu);
  const auto queue = platform->MakeQueue();
  const int64_t row_blocks = (length + block - 1) / block, tokens = sequences * queries;
  const int64_t columns = int64_t{shape.heads + 2 * shape.kv_heads} * shape.head_dim;
  const Buffer qkv = platform->Allocate(static_cast<size_t>(tokens * columns * 4));
  const Buffer out = platform->Allocate(static_cast<size_t>(tokens * shape.heads * shape.head_dim * 4));
  const int64_t cache_bytes = sequences * row_blocks * page.bytes();
  const int64_t layers = state.range(5) ? kBytesToRotate / cache_bytes + 1 : 1;
  const Buffer cache = platform->Allocate(static_cast<size_t>(layers * cache_bytes));
  const Buffer ints = platform->Allocate(static_cast<size_t>(sequences * (row_blocks + 2) + 1) * 4);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < tokens * columns; ++i) reinterpret_cast<float*>(qkv.data())[i] = uniform(random);
  std::vector<float> row(static_cast<size_t>(2 * shape.head_dim));
  const CacheView first(cache.View(DType::kU8, {sequences * row_blocks, page.bytes()}), page);
  for (int64_t slot = 0; slot < sequences * row_blocks * block; ++slot)
    for (int head = 0; head < shape.kv_heads; ++head) {
      for (float& x : row) x = uniform(random);
      first.Store(slot, head, row.data(), row.data() + shape.head_dim);
    }
  for (int64_t layer = 1; layer < layers; ++layer)
    std::memcpy(cache.data() + layer * cache_bytes, cache.data(), static_cast<size_t>(cache_bytes));
  int32_t* cu_q = reinterpret_cast<int32_t*>(ints.data());
  int32_t* seq_len = cu_q + sequences + 1;
  int32_t* table = seq_len + sequences;
  for (int64_t s = 0; s <= sequences; ++s) cu_q[s] = static_cast<int32_t>(s * queries);
  for (int64_t s = 0; s < sequences; ++s) seq_len[s] = static_cast<int32_t>(length);
  for (int64_t i = 0; i < sequences * row_blocks; ++i) table[i] = static_cast<int32_t>(i);
  const size_t seq_at = static_cast<size_t>(sequences + 1) * 4, table_at = seq_at + static_cast<size_t>(sequences) * 4;
  PagedAttentionOp<Tensor> op{.qkv = qkv.View(DType::kF32, {tokens, columns}),
                              .cache = cache.View(DType::kU8, {sequences * row_blocks, page.bytes()}),
                              .cu_q = ints.View(DType::kI32, {sequences + 1}),
                              .seq_len = ints.View(DType::kI32, {sequences}, seq_at),
                              .block_table = ints.View(DType::kI32, {sequences, row_blocks}, table_at),
                              .out = out.View(DType::kF32, {tokens, int64_t{shape.heads} * shape.head_dim}),
                              .kv_dtype = page.dtype,
                              .block_size = page.block_size,
                              .heads = shape.heads,
                              .kv_heads = shape.kv_heads,
                              .head_dim = shape.head_dim,
                              .window = shape.window,
                              .scale = 1 / std::sqrt(static_cast<float>(shape.head_dim))};
  const OpKernel* kernel = FindOp(OpId::kPagedAttention, DeviceType::kCpu);
  int64_t layer = 0;
  for (auto _ : state) {
    op.cache.data = cache.data() + layer * cache_bytes;
    layer = (layer + 1) % layers;
    queue->Launch(*kernel, op, {});
  }
  state.SetLabel(std::string(DTypeName(page.dtype)));
  double pairs = 0;  // (query, visible key)
  for (int64_t q = 0; q < queries; ++q) {
    const int64_t seen = length - queries + q + 1;
    pairs += static_cast<double>(shape.window > 0 ? std::min<int64_t>(seen, shape.window) : seen);
  }
  state.counters["GMAC/s"] =
      benchmark::Counter(pairs * static_cast<double>(sequences * shape.heads * shape.head_dim) * 2e-9,
                         benchmark::Counter::kIsIterationInvariantRate);
  state.counters["GB/s of KV"] =
      benchmark::Counter(static_cast<double>(cache_bytes) * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(PagedAttentionLayer)
    ->ArgNames({"shape", "sequences", "length", "queries", "kv", "memory"})
    ->ArgsProduct({{0, 1, 2}, {1}, {512, 4096}, {512}, {0, 3, 5}, {0}})
    ->ArgsProduct({{0, 1, 2}, {1}, {64, 512}, {1}, {0, 1, 2, 3, 4, 5}, {0}})
    ->ArgsProduct({{0, 1, 2}, {1}, {4096}, {1}, {0, 1, 2, 3, 4, 5}, {1}})
    ->ArgsProduct({{0, 1, 2}, {16}, {512}, {1}, {0, 3, 5}, {1}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

}  // namespace
}  // namespace vt
