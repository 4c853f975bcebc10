// Host memory platform: lazily zeroed mappings, a synchronous queue, and kernels on the shared thread pool.
#include "vt/cpu/platform.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/cpu_info.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "vt/cpu/isa.h"
#include "vt/cpu/packer.h"
#include "vt/kernel_context.h"

namespace vt {
namespace {

// More than any machine has; a mistyped thread count must not start a million threads.
constexpr int kMaxThreads = 1024;

void UnmapHost(std::byte* data, size_t size) { munmap(data, size); }

class HostContext final : public KernelContext {
 public:
  HostContext(std::shared_ptr<base::ThreadPool> pool, Isa best)
      : pool_(std::move(pool)), scratch_(static_cast<size_t>(pool_->workers())) {
    isa = best;
    workers = pool_->workers();
  }

  std::span<std::byte> Scratch(int worker, size_t bytes) override {
    Buffer& buffer = scratch_.at(static_cast<size_t>(worker));
    if (buffer.size() < bytes) {
      // Rounded up so that growing prompts do not map again for every shape.
      constexpr size_t kStep = size_t{1} << 20;
      buffer = AllocateHost({}, (bytes + kStep - 1) / kStep * kStep);
    }
    return {buffer.data(), bytes};
  }

 protected:
  void RunParallel(int64_t count, int64_t grain, RangeFn run, void* state) override {
    pool_->Run(count, grain, run, state);
  }

 private:
  std::shared_ptr<base::ThreadPool> pool_;
  std::vector<Buffer> scratch_;
};

class HostQueue final : public Queue {
 public:
  HostQueue(std::shared_ptr<base::ThreadPool> pool, Isa isa) : context_(std::move(pool), isa) {}

  void Launch(const OpKernel& kernel, const OpArgs& args, const KernelOptions& options) override {
    context_.numerics = options.numerics;
    kernel.run(args, context_);
    CountExecution(kernel);
  }

  void CopyAsync(Tensor dst, Tensor src) override {
    CHECK(dst.dtype == src.dtype && dst.rank == src.rank && dst.shape == src.shape, "copy of ", src.bytes(),
          " bytes into ", dst.bytes(), ": shapes or dtypes differ");
    CHECK(dst.is_contiguous() && src.is_contiguous(), "copies are of contiguous tensors");
    // memmove: the two may be overlapping views of one buffer.
    if (dst.bytes() > 0) std::memmove(dst.data, src.data, static_cast<size_t>(dst.bytes()));
  }

  Event Record() override { return {++recorded_}; }
  void Wait(Event) override {}

 private:
  HostContext context_;
  uint64_t recorded_ = 0;
};

class HostPlatform final : public Platform {
 public:
  HostPlatform(DeviceType type, const PlatformOptions& options) {
    CHECK(type == DeviceType::kCpu || type == DeviceType::kRef, "device type ", static_cast<int>(type));
    if (options.threads < 0 || options.threads > kMaxThreads) {
      base::Throw(base::ErrorCode::kInvalidArgument, "threads: ", options.threads, " is not in 0 .. ", kMaxThreads,
                  " (0: one per physical core)");
    }
    info_.type = type;
    info_.host_memory = true;
    info_.total_memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    if (type == DeviceType::kRef) {
      info_.name = "reference kernels on one thread";
    } else {
      isa_ = ResolveIsa(options.isa);
      info_.isa = IsaName(isa_);
      info_.name = CpuBrand() + ", " + std::string(IsaLongName(isa_));
      info_.threads = options.threads > 0 ? options.threads : base::UsableCores();
    }
    pool_ = std::make_shared<base::ThreadPool>(info_.threads);
    if (type == DeviceType::kCpu) packer_ = std::make_unique<R16Packer>(pool_);
  }

  const PlatformInfo& info() const override { return info_; }
  Buffer Allocate(size_t bytes) override { return AllocateHost(device(), bytes); }
  std::unique_ptr<Queue> MakeQueue() override { return std::make_unique<HostQueue>(pool_, isa_); }
  Packer* packer() override { return packer_.get(); }

 protected:
  void RunOnHost(int64_t count, RangeFn run, void* state) override { pool_->Run(count, 1, run, state); }

 private:
  PlatformInfo info_;
  Isa isa_ = Isa::kAvx2;
  std::shared_ptr<base::ThreadPool> pool_;
  std::unique_ptr<Packer> packer_;
};

}  // namespace

Buffer AllocateHost(DeviceId device, size_t bytes) {
  const size_t size = std::max<size_t>(bytes, 1);
  // A page-aligned private mapping: aligned for every vector width, zero, and without memory until it is touched.
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    base::Throw(base::ErrorCode::kOutOfMemory, "memory: cannot reserve ", bytes, " bytes (", bytes >> 20,
                " MiB); free memory or ask for a smaller context or cache");
  }
  return Buffer(device, static_cast<std::byte*>(data), size, UnmapHost);
}

std::shared_ptr<Platform> MakeHostPlatform(DeviceType type, const PlatformOptions& options) {
  return std::make_shared<HostPlatform>(type, options);
}

}  // namespace vt
