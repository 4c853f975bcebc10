// Paged attention of one layer: prompts and decodes of the shapes of small served models, on all workers.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "vt/buffer.h"
#include "vt/ops.h"

namespace vt {
namespace {

struct Shape {
  int heads = 0, kv_heads = 0, head_dim = 0, window = 0;
};
constexpr Shape kShapes[] = {{9, 3, 64, 0}, {4, 1, 256, 512}, {32, 8, 128, 0}};

// Arguments: shape, sequences, length of each, queries of each, 1 for bf16.
void PagedAttentionLayer(benchmark::State& state) {
  const Shape shape = kShapes[state.range(0)];
  const int64_t sequences = state.range(1), length = state.range(2), queries = state.range(3), block = 32;
  const DType cache_type = state.range(4) ? DType::kBF16 : DType::kF32;
  const auto platform = MakePlatform(DeviceType::kCpu);
  const auto queue = platform->MakeQueue();
  const int64_t row_blocks = (length + block - 1) / block, tokens = sequences * queries;
  const int64_t columns = int64_t{shape.heads + 2 * shape.kv_heads} * shape.head_dim;
  const Buffer qkv = platform->Allocate(static_cast<size_t>(tokens * columns * 4));
  const Buffer out = platform->Allocate(static_cast<size_t>(tokens * shape.heads * shape.head_dim * 4));
  const int64_t cache_elements = sequences * row_blocks * 2 * block * shape.kv_heads * shape.head_dim;
  const Buffer cache = platform->Allocate(static_cast<size_t>(cache_elements * DTypeBytes(cache_type)));
  const Buffer ints = platform->Allocate(static_cast<size_t>(sequences * (row_blocks + 2) + 1) * 4);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < tokens * columns; ++i) reinterpret_cast<float*>(qkv.data())[i] = uniform(random);
  for (int64_t i = 0; i < cache_elements; ++i) {
    if (cache_type == DType::kF32)
      reinterpret_cast<float*>(cache.data())[i] = uniform(random);
    else
      reinterpret_cast<uint16_t*>(cache.data())[i] =
          static_cast<uint16_t>(0x3f00 + random() % 128 + random() % 2 * 0x8000);
  }
  int32_t* cu_q = reinterpret_cast<int32_t*>(ints.data());
  int32_t* seq_len = cu_q + sequences + 1;
  int32_t* table = seq_len + sequences;
  for (int64_t s = 0; s <= sequences; ++s) cu_q[s] = static_cast<int32_t>(s * queries);
  for (int64_t s = 0; s < sequences; ++s) seq_len[s] = static_cast<int32_t>(length);
  for (int64_t i = 0; i < sequences * row_blocks; ++i) table[i] = static_cast<int32_t>(i);
  const size_t seq_at = static_cast<size_t>(sequences + 1) * 4, table_at = seq_at + static_cast<size_t>(sequences) * 4;
  const PagedAttentionOp<Tensor> op{
      .qkv = qkv.View(DType::kF32, {tokens, columns}),
      .cache = cache.View(cache_type, {sequences * row_blocks, 2, block, shape.kv_heads, shape.head_dim}),
      .cu_q = ints.View(DType::kI32, {sequences + 1}),
      .seq_len = ints.View(DType::kI32, {sequences}, seq_at),
      .block_table = ints.View(DType::kI32, {sequences, row_blocks}, table_at),
      .out = out.View(DType::kF32, {tokens, int64_t{shape.heads} * shape.head_dim}),
      .heads = shape.heads,
      .kv_heads = shape.kv_heads,
      .head_dim = shape.head_dim,
      .window = shape.window,
      .scale = 1 / std::sqrt(static_cast<float>(shape.head_dim))};
  const OpKernel* kernel = FindOp(OpId::kPagedAttention, DeviceType::kCpu);
  for (auto _ : state) queue->Launch(*kernel, op, {});
  double pairs = 0;  // (query, visible key)
  for (int64_t q = 0; q < queries; ++q) {
    const int64_t seen = length - queries + q + 1;
    pairs += static_cast<double>(shape.window > 0 ? std::min<int64_t>(seen, shape.window) : seen);
  }
  state.counters["GMAC/s"] =
      benchmark::Counter(pairs * static_cast<double>(sequences * shape.heads * shape.head_dim) * 2e-9,
                         benchmark::Counter::kIsIterationInvariantRate);
  state.counters["GB/s of KV"] =
      benchmark::Counter(static_cast<double>(cache.size()) * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(PagedAttentionLayer)
    ->ArgNames({"shape", "sequences", "length", "queries", "bf16"})
    ->ArgsProduct({{0, 1, 2}, {1}, {512, 4096}, {512}, {1}})
    ->ArgsProduct({{0, 1, 2}, {1}, {64, 512, 4096}, {1}, {0, 1}})
    ->ArgsProduct({{0, 1, 2}, {16}, {512}, {1}, {1}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

}  // namespace
}  // namespace vt
