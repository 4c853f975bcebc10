// What a step costs beside the model's arithmetic: schedule, batch, sampling of greedy rows, update, and the hand-overs
// between the engine and the runner, with a device whose kernels do nothing.
#include <benchmark/benchmark.h>
#include <time.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>

#include "engine/engine_core.h"
#include "engine/kv/kv_cache_config.h"
#include "engine/run/gpu_model_runner.h"
#include "model/loaded_model.h"
#include "tests/model/tiny_model_util.h"

namespace {

std::atomic<int64_t> allocations{0};

}  // namespace

// Counts what all threads allocate.
__attribute__((noinline)) void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace vllm {
namespace {

constexpr int64_t kMaxModelLen = 4096, kBlockSize = 32;
// Steps of a run, and those at its ends that are not measured: prompts, and the end of the first sequences.
constexpr int64_t kSteps = 1100, kMargin = 50;

// Host memory, real copies, and kernels that leave zeros where they would leave results: every row samples token 0.
class CostlessPlatform : public vt::Platform {
 public:
  const vt::PlatformInfo& info() const override { return host_->info(); }
  vt::Buffer Allocate(size_t bytes) override { return host_->Allocate(bytes); }
  std::unique_ptr<vt::Queue> MakeQueue() override { return std::make_unique<Queue>(host_->MakeQueue()); }

 private:
  class Queue : public vt::Queue {
   public:
    explicit Queue(std::unique_ptr<vt::Queue> queue) : queue_(std::move(queue)) {}
    void Launch(const vt::OpKernel&, const vt::OpArgs&, const vt::KernelOptions&) override {}
    void CopyAsync(vt::Tensor dst, vt::Tensor src) override { queue_->CopyAsync(dst, src); }
    vt::Event Record() override { return queue_->Record(); }
    void Wait(vt::Event event) override { queue_->Wait(event); }

   private:
    std::unique_ptr<vt::Queue> queue_;
  };
  std::shared_ptr<vt::Platform> host_ = vt::MakePlatform(vt::DeviceType::kRef);
};

struct Moment {
  timespec wall, cpu;
  int64_t allocated;
  static Moment Now() {
    Moment now;
    clock_gettime(CLOCK_MONOTONIC, &now.wall);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now.cpu);
    now.allocated = allocations.load(std::memory_order_relaxed);
    return now;
  }
};

double Seconds(const timespec& begin, const timespec& end) {
  return static_cast<double>(end.tv_sec - begin.tv_sec) + static_cast<double>(end.tv_nsec - begin.tv_nsec) * 1e-9;
}

// Takes the outputs of the steps and notes when the measured ones began and ended.
class Meter {
 public:
  explicit Meter(int64_t requests) : running_(requests) {}
  void operator()(const std::vector<CoreOutput>& outputs) {
    ++steps_;
    if (steps_ == kMargin) begin_ = Moment::Now();
    if (steps_ == kSteps - kMargin) end_ = Moment::Now();
    for (const CoreOutput& output : outputs) {
      if (!output.finish) continue;
      const std::lock_guard lock(mutex_);
      if (--running_ == 0) done_.notify_all();
    }
  }
  void WaitForAll() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
  }
  const Moment& begin() const { return begin_; }
  const Moment& end() const { return end_; }

 private:
  int64_t steps_ = 0;
  Moment begin_ = {}, end_ = {};
  std::mutex mutex_;
  std::condition_variable done_;
  int64_t running_;
};

// Arguments: running requests; 1 for asynchronous scheduling; 1 for a model with sliding windows (several KV groups).
void DecodeStep(benchmark::State& state) {
  const int64_t requests = state.range(0);
  CostlessPlatform platform;
  const std::string folder = testing::WriteTinyModel(state.range(2) ? "gemma3" : "llama");
  const auto model = LoadedModel::FromModelDir(folder);
  model->LoadWeights(platform);
  std::filesystem::remove_all(folder);
  const KvCacheConfig kv = MakeKvCacheConfig(
      MakeKvCacheGroups(KvCacheSpecsOf(model->spec(), kBlockSize, vt::DType::kF32)), 0, 64 * requests * 3 + 64);
  double wall = 0, cpu = 0, allocated = 0;
  for (auto _ : state) {
    GPUModelRunner runner(*model, platform,
                          {.numerics = vt::Numerics::kExact, .max_num_seqs = requests, .max_model_len = kMaxModelLen});
    runner.initialize_kv_cache(kv);
    Meter meter(requests);
    EngineCore core({.scheduler = {.max_model_len = kMaxModelLen,
                                   .max_num_batched_tokens = 2048,
                                   .max_num_seqs = requests,
                                   .async_scheduling = state.range(1) != 0},
                     .kv_cache = kv},
                    &runner, [&](std::vector<CoreOutput> outputs) { meter(outputs); });
    SamplingParams params;
    params.temperature = 0;
    params.max_tokens = kSteps;
    const auto shared = std::make_shared<const SamplingParams>(params);
    std::vector<CoreRequest> batch;
    for (int64_t i = 0; i < requests; ++i)
      batch.push_back({.id = static_cast<RequestId>(i + 1),
                       .prompt_token_ids = std::vector<int32_t>(16, static_cast<int32_t>(i % testing::kTinyVocab)),
                       .params = shared});
    if (!core.Add(std::move(batch)).ok()) state.SkipWithError("the requests were refused");
    meter.WaitForAll();
    const double seconds = Seconds(meter.begin().wall, meter.end().wall);
    state.SetIterationTime(seconds);
    wall += seconds;
    cpu += Seconds(meter.begin().cpu, meter.end().cpu);
    allocated += static_cast<double>(meter.end().allocated - meter.begin().allocated);
  }
  const double steps = static_cast<double>(state.iterations()) * static_cast<double>(kSteps - 2 * kMargin);
  state.counters["us/step"] = wall / steps * 1e6;
  state.counters["cpu_us/step"] = cpu / steps * 1e6;
  state.counters["allocations/step"] = allocated / steps;
}

BENCHMARK(DecodeStep)
    ->ArgNames({"requests", "async", "windows"})
    ->ArgsProduct({{1, 64}, {0, 1}, {0, 1}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(0.3);

}  // namespace
}  // namespace vllm
