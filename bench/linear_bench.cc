// Linear kernels of the cpu provider: bytes and operations a second, and their share of a read loop and of a
// multiply-add loop that are measured just before.
#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/cpu_info.h"
#include "base/thread_pool.h"
#include "quant/format.h"
#include "vt/buffer.h"
#include "vt/cpu/isa.h"
#include "vt/ops.h"
#include "vt/weight.h"

namespace vt {
namespace {

// More than any shared cache of the machines that this runs on, at least as much as a small model.
constexpr int64_t kFootprint = int64_t{256} << 20;

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

base::ThreadPool& Pool() {
  static base::ThreadPool pool(base::UsableCores());
  return pool;
}

const Buffer& Memory() {
  static const Buffer memory = [] {
    Buffer buffer = MakePlatform(DeviceType::kRef)->Allocate(kFootprint);
    std::memset(buffer.data(), 1, kFootprint);
    return buffer;
  }();
  return memory;
}

// Bytes a second of a loop that only reads.
double ReadRate() {
  const double start = Seconds();
  Pool().ParallelFor(kFootprint, int64_t{1} << 20, [](int64_t begin, int64_t end, int) {
    __m128i sums[4] = {};
    const __m128i* p = reinterpret_cast<const __m128i*>(Memory().data() + begin);
    for (int64_t i = 0; i < (end - begin) / 16; i += 4) {
      for (int j = 0; j < 4; ++j) sums[j] = _mm_add_epi64(sums[j], _mm_load_si128(p + i + j));
    }
    benchmark::DoNotOptimize(sums);
  });
  return static_cast<double>(kFootprint) / (Seconds() - start);
}

// Ten independent sums: more than latency times ports. Register 0 is zero, so that no operand is denormal.
#define VT_ONE(ins, reg, sum) ins " %%" reg "0,%%" reg "0,%%" reg sum "\n"
#define VT_TEN(ins, reg)                                                                                        \
  asm volatile("vpxor %%xmm0,%%xmm0,%%xmm0\n" VT_ONE(ins, reg, "1") VT_ONE(ins, reg, "2") VT_ONE(ins, reg, "3") \
                   VT_ONE(ins, reg, "4") VT_ONE(ins, reg, "5") VT_ONE(ins, reg, "6") VT_ONE(ins, reg, "7")      \
                       VT_ONE(ins, reg, "8") VT_ONE(ins, reg, "9") VT_ONE(ins, reg, "10")::                     \
                           : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10")

// Operations a second (two a product) of a loop of independent multiply-adds of one kind.
double MultiplyRate(Isa isa, bool bf16) {
  constexpr int64_t kTurns = 400000;
  const double lanes = isa >= Isa::kAvx512 ? bf16 ? 32 : 16 : 8;
  const int64_t items = Pool().workers() * 4;
  const double start = Seconds();
  Pool().ParallelFor(items, 1, [&](int64_t, int64_t, int) {
    for (int64_t i = 0; i < kTurns; ++i) {
      if (isa < Isa::kAvx512) {
        VT_TEN("vfmadd231ps", "ymm");
      } else if (!bf16) {
        VT_TEN("vfmadd231ps", "zmm");
      } else {
        VT_TEN("vdpbf16ps", "zmm");
      }
    }
  });
  return static_cast<double>(items * kTurns) * 10 * lanes * 2 / (Seconds() - start);
}

// Copies of one weight in a format, together as large as a model, so that a run over them comes from memory.
struct Weights {
  std::vector<std::byte> bytes;
  std::vector<PackedWeight> copies;
};

const Weights& WeightsOf(FormatId id, int64_t k, int64_t n, bool many) {
  static std::map<std::tuple<FormatId, int64_t, int64_t, bool>, std::unique_ptr<Weights>> all;
  std::unique_ptr<Weights>& entry = all[{id, k, n, many}];
  if (entry) return *entry;
  all.clear();
  std::unique_ptr<Weights>& fresh = all[{id, k, n, many}];
  fresh = std::make_unique<Weights>();
  const Format& format = GetFormat(id);
  const int64_t row_bytes = RowBytes(format, k).value(), size = row_bytes * n;
  const int64_t copies = many ? std::max<int64_t>(kFootprint / size, 1) : 1;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.05f);
  std::vector<float> row(static_cast<size_t>(k));
  fresh->bytes.resize(static_cast<size_t>(size * copies));
  // One row's bits serve for all: kernels do not branch on values.
  for (float& value : row) value = normal(random);
  format.quantize(row.data(), k, fresh->bytes.data());
  for (int64_t r = 1; r < n * copies; ++r) {
    std::memcpy(fresh->bytes.data() + r * row_bytes, fresh->bytes.data(), static_cast<size_t>(row_bytes));
  }
  for (int64_t c = 0; c < copies; ++c) {
    PackedWeight weight = {.n = n, .k = k};
    weight.segments.push_back({.format = id, .n = n, .row_bytes = row_bytes, .data = fresh->bytes.data() + c * size});
    fresh->copies.push_back(std::move(weight));
  }
  return *fresh;
}

// Arguments: format, k, n, rows, numerics, instruction set (0: the best).
void Linear(benchmark::State& state) {
  const FormatId id = static_cast<FormatId>(state.range(0));
  const int64_t k = state.range(1), n = state.range(2), rows = state.range(3);
  const Numerics numerics = static_cast<Numerics>(state.range(4));
  const auto platform = MakePlatform(DeviceType::kCpu, {.isa = state.range(5) != 0 ? "avx2" : ""});
  const auto queue = platform->MakeQueue();
  const OpKernel* kernel = FindOp(OpId::kLinear, DeviceType::kCpu);
  const Weights& weights = WeightsOf(id, k, n, rows <= 8);
  const Buffer x = platform->Allocate(static_cast<size_t>(rows * k * 4));
  const Buffer out = platform->Allocate(static_cast<size_t>(rows * n * 4));
  for (int64_t i = 0; i < rows * k; ++i) reinterpret_cast<float*>(x.data())[i] = static_cast<float>(i % 17 - 8) / 8;
  const Isa isa = state.range(5) != 0 ? Isa::kAvx2 : DetectIsa();
  const bool bf16 = rows > 8 && numerics == Numerics::kDefault && isa >= Isa::kAvx512Bf16;
  double read = 0, multiply = 0;
  for (int i = 0; i < 3; ++i) {
    read = std::max(read, ReadRate());
    multiply = std::max(multiply, MultiplyRate(isa, bf16));
  }
  for (auto _ : state) {
    for (const PackedWeight& weight : weights.copies) {
      queue->Launch(
          *kernel,
          OpArgs(LinearOp<Tensor>{
              .x = x.View(DType::kF32, {rows, k}), .out = out.View(DType::kF32, {rows, n}), .weight = &weight}),
          {.numerics = numerics});
    }
  }
  const double copies = static_cast<double>(weights.copies.size()) * static_cast<double>(state.iterations());
  const double bytes = copies * static_cast<double>(weights.copies[0].segments[0].row_bytes * n);
  const double operations = copies * 2 * static_cast<double>(rows * k * n);
  const auto rate = [](double v) { return benchmark::Counter(v, benchmark::Counter::kIsRate); };
  state.counters["GB/s"] = rate(bytes / 1e9);
  state.counters["GFLOP/s"] = rate(operations / 1e9);
  state.counters["of_read_loop"] = rate(bytes / read);
  state.counters["of_fma_loop"] = rate(operations / multiply);
  state.SetLabel(std::string(GetFormat(id).name));
}

void Shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"format", "k", "n", "rows", "numerics", "avx2"});
  const auto id = [](FormatId format) { return static_cast<int64_t>(format); };
  for (const int64_t avx2 : {0, 1}) {
    for (const FormatId format : {FormatId::kQ4_1, FormatId::kQ8_0, FormatId::kQ5_0, FormatId::kQ4_0, FormatId::kQ4_K,
                                  FormatId::kQ6_K, FormatId::kF32, FormatId::kF16, FormatId::kBF16}) {
      // Rows of 576 are gate and up of a 135M model; K-quants need rows of whole blocks of 256.
      const bool super = format == FormatId::kQ4_K || format == FormatId::kQ6_K;
      const int64_t k = super ? 2048 : 576, n = super ? 640 : 3072;
      for (const int64_t rows : {1, 4, 8}) bench->Args({id(format), k, n, rows, 1, avx2});
      for (const int64_t numerics : {0, 1}) bench->Args({id(format), k, n, 512, numerics, avx2});
    }
  }
}
BENCHMARK(Linear)->Apply(Shapes)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(0.2);

}  // namespace
}  // namespace vt
