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
#include "vt/cpu/amx_tiles.h"
#include "vt/cpu/isa.h"
#include "vt/cpu/linear.h"
#include "vt/cpu/packer.h"
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

enum class Product { kF32, kBf16, kInt16, kInt8, kTiles };

// Operations a second of the tile unit, on BF16 in four independent sums.
double TileRate() {
  constexpr int64_t kTurns = 100000;
  const int64_t items = Pool().workers() * 4;
  TileConfig config;
  std::fill_n(config.row_bytes, 8, 64);
  std::fill_n(config.rows, 8, 16);
  const double start = Seconds();
  Pool().ParallelFor(items, 1, [&](int64_t, int64_t, int) {
    TileConfigure(config);
    for (int64_t i = 0; i < kTurns; ++i) {
      TileDotBf16<0, 4, 6>();
      TileDotBf16<1, 4, 7>();
      TileDotBf16<2, 5, 6>();
      TileDotBf16<3, 5, 7>();
    }
    TileRelease();
  });
  return static_cast<double>(items * kTurns) * 4 * 16 * 16 * 32 * 2 / (Seconds() - start);
}

// Operations a second (two a product) of a loop of independent multiply-adds of one kind.
double MultiplyRate(Isa isa, Product product) {
  if (product == Product::kTiles) return TileRate();
  constexpr int64_t kTurns = 400000;
  const double lanes = (isa >= Isa::kAvx512 ? 16 : 8) * (product == Product::kF32    ? 1
                                                         : product == Product::kInt8 ? 4
                                                                                     : 2);
  const int64_t items = Pool().workers() * 4;
  const double start = Seconds();
  Pool().ParallelFor(items, 1, [&](int64_t, int64_t, int) {
    for (int64_t i = 0; i < kTurns; ++i) {
      if (isa < Isa::kAvx512) {
        if (product == Product::kF32) {
          VT_TEN("vfmadd231ps", "ymm");
        } else if (product == Product::kInt8) {
          VT_TEN("vpmaddubsw", "ymm");
        } else {
          VT_TEN("vpmaddwd", "ymm");
        }
      } else if (product == Product::kF32) {
        VT_TEN("vfmadd231ps", "zmm");
      } else if (product == Product::kBf16) {
        VT_TEN("vdpbf16ps", "zmm");
      } else if (product == Product::kInt8) {
        VT_TEN("vpdpbusd", "zmm");
      } else {
        VT_TEN("vpdpwssd", "zmm");
      }
    }
  });
  return static_cast<double>(items * kTurns) * 10 * lanes * 2 / (Seconds() - start);
}

// Copies of one weight in a format, together as large as a model, so that a run over them comes from memory.
struct Weights {
  std::unique_ptr<ResidentSlot[]> slots;
  int64_t count = 0;
};

const Weights& WeightsOf(FormatId id, int64_t k, int64_t n, bool many, Platform& platform) {
  static std::map<std::tuple<FormatId, int64_t, int64_t, bool>, std::unique_ptr<Weights>> all;
  std::unique_ptr<Weights>& entry = all[{id, k, n, many}];
  if (entry) return *entry;
  all.clear();
  std::unique_ptr<Weights>& fresh = all[{id, k, n, many}];
  fresh = std::make_unique<Weights>();
  const Format& format = GetFormat(id);
  const int64_t row_bytes = RowBytes(format, k).value(), size = row_bytes * n;
  fresh->count = many ? std::max<int64_t>(kFootprint / size, 1) : 1;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.05f);
  std::vector<float> row(static_cast<size_t>(k));
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  // One row's bits serve for all: kernels do not branch on values.
  for (float& value : row) value = normal(random);
  if (format.quantize != nullptr) format.quantize(row.data(), k, bytes.data());
  for (int64_t r = 1; r < n; ++r)
    std::memcpy(bytes.data() + r * row_bytes, bytes.data(), static_cast<size_t>(row_bytes));
  fresh->slots = std::make_unique<ResidentSlot[]>(static_cast<size_t>(fresh->count));
  const WeightSource source = {.name = "bench", .format = id, .n = n, .k = k, .bytes = bytes};
  for (int64_t c = 0; c < fresh->count; ++c) fresh->slots[c].Load({&source, 1}, WeightUse::kMatrix, platform);
  return *fresh;
}

// Arguments: format, k, n, rows, numerics, instruction set (0: the best).
void Linear(benchmark::State& state) {
  const FormatId id = static_cast<FormatId>(state.range(0));
  const int64_t k = state.range(1), n = state.range(2), rows = state.range(3);
  const Numerics numerics = static_cast<Numerics>(state.range(4));
  const auto platform = MakePlatform(DeviceType::kCpu, {.threads = 0, .isa = state.range(5) != 0 ? "avx2" : ""});
  const auto queue = platform->MakeQueue();
  const OpKernel* kernel = FindOp(OpId::kLinear, DeviceType::kCpu);
  const Weights& weights = WeightsOf(id, k, n, rows <= 32, *platform);
  const Buffer x = platform->Allocate(static_cast<size_t>(rows * k * 4));
  const Buffer out = platform->Allocate(static_cast<size_t>(rows * n * 4));
  for (int64_t i = 0; i < rows * k; ++i) reinterpret_cast<float*>(x.data())[i] = static_cast<float>(i % 17 - 8) / 8;
  const Isa isa = state.range(5) != 0 ? Isa::kAvx2 : DetectIsa();
  const std::string_view recipe = CpuLinearKernelName(id, rows, numerics, isa);
  const Product product = recipe == "f32"              ? Product::kF32
                          : recipe == "bf16"           ? Product::kBf16
                          : recipe == "amx bf16"       ? Product::kTiles
                          : recipe.starts_with("int8") ? Product::kInt8
                                                       : Product::kInt16;
  double read = 0, multiply = 0;
  for (int i = 0; i < 3; ++i) {
    read = std::max(read, ReadRate());
    multiply = std::max(multiply, MultiplyRate(isa, product));
  }
  for (auto _ : state) {
    for (int64_t c = 0; c < weights.count; ++c) {
      queue->Launch(*kernel,
                    OpArgs(LinearOp<Tensor>{.x = x.View(DType::kF32, {rows, k}),
                                            .out = out.View(DType::kF32, {rows, n}),
                                            .weight = weights.slots[c].Get().get()}),
                    {.numerics = numerics});
    }
  }
  const double copies = static_cast<double>(weights.count * state.iterations());
  const double bytes = copies * static_cast<double>(weights.slots[0].Get()->resident_bytes);
  const double operations = copies * 2 * static_cast<double>(rows * k * n);
  const auto rate = [](double v) { return benchmark::Counter(v, benchmark::Counter::kIsRate); };
  state.counters["GB/s"] = rate(bytes / 1e9);
  state.counters["GFLOP/s"] = rate(operations / 1e9);
  state.counters["of_read_loop"] = rate(bytes / read);
  state.counters["of_product_loop"] = rate(operations / multiply);
  state.SetLabel(std::string(GetFormat(id).name) + ", " + std::string(recipe));
}

void Shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"format", "k", "n", "rows", "numerics", "avx2"});
  const auto id = [](FormatId format) { return static_cast<int64_t>(format); };
  for (const int64_t avx2 : {0, 1}) {
    for (const CpuFormatRow& row : CpuFormats()) {
      for (const int64_t rows : {1, 4, 8, 16, 512}) bench->Args({id(row.id), 2048, 1024, rows, 1, avx2});
      bench->Args({id(row.id), 2048, 1024, 512, 0, avx2});
      for (const int64_t rows : {1, 512}) bench->Args({id(row.id), 2048, 1024, rows, 3, avx2});
    }
  }
}
BENCHMARK(Linear)->Apply(Shapes)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(0.2);

}  // namespace
}  // namespace vt
