// What kernels see while they run: policy, machine and workers. Only kernels and queues include this.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "vt/numerics.h"

namespace vt {

// Instruction sets with kernels of their own, in rising order.
enum class Isa : int8_t { kAvx2, kAvxVnni, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };

// A function over items [begin, end) run by worker `worker` (0 .. workers - 1).
using RangeFn = void (*)(void* state, int64_t begin, int64_t end, int worker);

class KernelContext {
 public:
  virtual ~KernelContext() = default;
  Numerics numerics = Numerics::kDefault;
  Isa isa = Isa::kAvx2;
  int workers = 1;

  // Calls f(begin, end, worker) over disjoint ranges that cover [0, count), each at most `grain` items (dynamic order),
  // on all workers; returns when all are done (one barrier). noexcept work only.
  template <class F>
  void ParallelFor(int64_t count, int64_t grain, F&& f) {
    RunParallel(
        count, grain,
        [](void* state, int64_t begin, int64_t end, int worker) {
          (*static_cast<std::remove_reference_t<F>*>(state))(begin, end, worker);
        },
        &f);
  }
  // Per-worker memory, kept between calls, 64-byte aligned; contents are undefined.
  virtual std::span<std::byte> Scratch(int worker, size_t bytes) = 0;

 protected:
  virtual void RunParallel(int64_t count, int64_t grain, RangeFn run, void* state) = 0;
};

}  // namespace vt
