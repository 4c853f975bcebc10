// The passes over the vocabulary: the device's search for each row's maximum with its share of a read loop over the
// same bytes, and the sampling of rows that need more than that.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/sample/sampler.h"
#include "vt/buffer.h"
#include "vt/ops.h"

namespace vllm {
namespace {

constexpr int64_t kSmallVocab = 49152, kLargeVocab = 262144;  // SmolLM2, Gemma 3

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

typedef int64_t Vector __attribute__((vector_size(32), aligned(32)));

__attribute__((target_clones("avx2", "default"))) int64_t Sum(const Vector* data, int64_t count) {
  Vector sums[4] = {};
  for (int64_t i = 0; i + 4 <= count; i += 4) {
    for (int j = 0; j < 4; ++j) sums[j] += data[i + j];
  }
  const Vector sum = sums[0] + sums[1] + sums[2] + sums[3];
  return sum[0] + sum[1] + sum[2] + sum[3];
}

// Bytes a second of a loop over these bytes that only reads, on the platform's workers: the best of some passes.
double ReadRate(vt::Platform& platform, const vt::Buffer& memory, int64_t bytes) {
  constexpr int64_t kPiece = 65536;
  double best = 0;
  const double end = Seconds() + 0.1;
  for (int pass = 0; pass < 5 || Seconds() < end; ++pass) {
    const double start = Seconds();
    platform.ForEachOnHost((bytes + kPiece - 1) / kPiece, [&](int64_t i) {
      const int64_t count = std::min(kPiece, bytes - i * kPiece);
      benchmark::DoNotOptimize(Sum(reinterpret_cast<const Vector*>(memory.data() + i * kPiece), count / 32));
    });
    best = std::max(best, static_cast<double>(bytes) / (Seconds() - start));
  }
  return best;
}

// As logits are: most of a row far below the few likely tokens.
void FillLogits(float* logits, int64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 2);
  for (int64_t i = 0; i < count; ++i) logits[i] = normal(random) + (i % 1009 == 0 ? 10 : 0);
}

// Arguments: vocabulary, rows.
void RowMaxOfLogits(benchmark::State& state) {
  const int64_t vocab = state.range(0), rows = state.range(1), bytes = rows * vocab * 4;
  const auto platform = vt::MakePlatform(vt::DeviceType::kCpu);
  const auto queue = platform->MakeQueue();
  const vt::Buffer logits = platform->Allocate(static_cast<size_t>(bytes));
  const vt::Buffer max = platform->Allocate(static_cast<size_t>(rows * 4));
  const vt::Buffer index = platform->Allocate(static_cast<size_t>(rows * 4));
  FillLogits(reinterpret_cast<float*>(logits.data()), rows * vocab);
  const double read = ReadRate(*platform, logits, bytes);
  const vt::OpKernel* kernel = vt::FindOp(vt::OpId::kRowMax, vt::DeviceType::kCpu);
  const vt::OpArgs op = vt::RowMaxOp<vt::Tensor>{.x = logits.View(vt::DType::kF32, {rows, vocab}),
                                                 .max = max.View(vt::DType::kF32, {rows}),
                                                 .index = index.View(vt::DType::kI32, {rows})};
  for (auto _ : state) queue->Launch(*kernel, op, {});
  const double all = static_cast<double>(bytes) * static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(all / 1e9, benchmark::Counter::kIsRate);
  state.counters["of_read_loop"] = benchmark::Counter(all / read, benchmark::Counter::kIsRate);
  state.SetLabel(platform->info().isa);
}
BENCHMARK(RowMaxOfLogits)
    ->ArgNames({"vocab", "rows"})
    ->ArgsProduct({{kSmallVocab, kLargeVocab}, {1, 16, 64}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

struct Kind {
  const char* name;
  void (*set)(SamplingParams& params);
};
const Kind kKinds[] = {
    {"temperature", [](SamplingParams&) {}},
    {"temperature 0.7", [](SamplingParams& p) { p.temperature = 0.7; }},
    {"top_k 40, top_p 0.95", [](SamplingParams& p) { p.temperature = 0.7, p.top_k = 40, p.top_p = 0.95; }},
    {"top_p 0.9", [](SamplingParams& p) { p.top_p = 0.9; }},
    {"min_p 0.05", [](SamplingParams& p) { p.min_p = 0.05; }},
    {"top_k of half the vocabulary", [](SamplingParams& p) { p.top_k = kSmallVocab / 2; }},
    {"greedy, 5 logprobs", [](SamplingParams& p) { p.temperature = 0, p.logprobs = 5; }},
};

// Arguments: vocabulary, rows, kind of sampling, 1 for all workers.
void SampleRows(benchmark::State& state) {
  const int64_t vocab = state.range(0), rows = state.range(1);
  const auto platform = vt::MakePlatform(vt::DeviceType::kCpu);
  const Kind& kind = kKinds[state.range(2)];
  SamplingParams params;
  kind.set(params);
  std::vector<float> original(static_cast<size_t>(rows * vocab));
  FillLogits(original.data(), rows * vocab);
  std::vector<float> logits = original;
  const RowMax first = MaxOf(std::span(original).first(static_cast<size_t>(vocab)));
  const Sampler sampler(LogprobsMode::kRawLogprobs);
  int64_t position = 0;
  const auto sample = [&](int64_t r) {
    const std::span<float> row = std::span(logits).subspan(static_cast<size_t>(r * vocab), static_cast<size_t>(vocab));
    SampleRow one{.params = &params, .logits = row, .seed = 7, .position = position + r};
    if (r == 0) one.max = first;
    benchmark::DoNotOptimize(sampler.Sample(one));
  };
  for (auto _ : state) {
    std::memcpy(logits.data(), original.data(), logits.size() * sizeof(float));  // sampling may change them
    const double start = Seconds();
    if (state.range(3)) {
      platform->ForEachOnHost(rows, sample);
    } else {
      for (int64_t r = 0; r < rows; ++r) sample(r);
    }
    state.SetIterationTime(Seconds() - start);
    position += rows;
  }
  state.SetLabel(kind.name);
}
void SampleShapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"vocab", "rows", "kind", "workers"});
  for (int64_t kind = 0; kind < static_cast<int64_t>(std::size(kKinds)); ++kind) {
    for (const int64_t vocab : {kSmallVocab, kLargeVocab}) bench->Args({vocab, 1, kind, 0});
    for (const int64_t workers : {0, 1}) bench->Args({kSmallVocab, 16, kind, workers});
  }
}
BENCHMARK(SampleRows)->Apply(SampleShapes)->Unit(benchmark::kMicrosecond)->UseManualTime()->MinTime(0.1);

}  // namespace
}  // namespace vllm
