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
#include "quant/format.h"
#include "vt/buffer.h"
#include "vt/ops.h"
#include "vt/plan.h"
#include "vt/weight.h"

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

// Logits of some rows with their maxima, as the decoder's head plans it. Arguments: vocabulary, columns, rows, and the
// maxima: 0 none, 1 as planned, 2 by an op of their own.
void Head(benchmark::State& state) {
  const int64_t vocab = state.range(0), columns = state.range(1), rows = state.range(2);
  const auto platform = vt::MakePlatform(vt::DeviceType::kCpu);
  const auto queue = platform->MakeQueue();
  const vt::Format& format = vt::GetFormat(vt::FormatId::kQ8_0);
  const std::vector<std::byte> bytes(static_cast<size_t>(vt::RowBytes(format, columns).value() * vocab), std::byte{1});
  const vt::WeightSource source = {
      .name = "head", .format = vt::FormatId::kQ8_0, .n = vocab, .k = columns, .bytes = bytes};
  vt::ResidentSlot slot;
  slot.Load({&source, 1}, vt::WeightUse::kMatrix, *platform);
  vt::Graph graph;
  const vt::ValueId x = graph.Input(vt::RowCount::kLogitRows, columns, vt::DType::kF32, "x");
  const vt::ValueId logits = graph.Activation(vt::RowCount::kLogitRows, vocab, "logits");
  const vt::ValueId max = graph.Activation(vt::RowCount::kLogitRows, 0, "max");
  const vt::ValueId index = graph.Activation(vt::RowCount::kLogitRows, 0, "index", vt::DType::kI32);
  for (const vt::ValueId value : {logits, max, index}) graph.MarkOutput(value);
  graph.Add(vt::LinearOp<vt::ValueId>{.x = x, .out = logits, .weight = slot.Get().get()});
  if (state.range(3) == 1) graph.Add(vt::RowMaxOp<vt::ValueId>{.x = logits, .max = max, .index = index});
  vt::Plan plan(graph, *platform, vt::Numerics::kDefault, {.logit_rows = rows});
  const vt::StepSizes sizes = {.logit_rows = rows};
  for (int64_t i = 0; i < rows * columns; ++i) plan.At(x, sizes).as<float>()[i] = static_cast<float>(i % 17 - 8) / 8;
  const vt::Buffer memory = platform->Allocate(static_cast<size_t>(rows * 8));
  const vt::OpKernel* kernel = vt::FindOp(vt::OpId::kRowMax, vt::DeviceType::kCpu);
  const vt::OpArgs maxima =
      vt::RowMaxOp<vt::Tensor>{.x = plan.At(logits, sizes),
                               .max = memory.View(vt::DType::kF32, {rows}),
                               .index = memory.View(vt::DType::kI32, {rows}, static_cast<size_t>(rows * 4))};
  for (auto _ : state) {
    plan.Execute(*queue, sizes);
    if (state.range(3) == 2) queue->Launch(*kernel, maxima, {});
  }
  state.SetLabel(plan.choices()[0].lowering);
}
BENCHMARK(Head)
    ->ArgNames({"vocab", "columns", "rows", "maxima"})
    ->ArgsProduct({{kLargeVocab}, {640}, {1, 16, 64}, {0, 1, 2}})
    ->ArgsProduct({{kSmallVocab}, {576}, {1, 16, 64}, {0, 1, 2}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime()
    ->MinTime(0.3);

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
