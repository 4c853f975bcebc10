// Builders for kernel tests: owned host tensors, seeded values, packed caches, and a KernelContext of threads.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "vt/kernel_context.h"
#include "vt/ops.h"

namespace vt::testing {

// A contiguous host tensor with its memory; copies copy the values.
template <class T>
struct HostTensor {
  static constexpr DType kType = std::is_same_v<T, float>      ? DType::kF32
                                 : std::is_same_v<T, int32_t>  ? DType::kI32
                                 : std::is_same_v<T, uint16_t> ? DType::kBF16
                                                               : DType::kU8;
  std::vector<T> values = {};
  std::vector<int64_t> shape = {};

  HostTensor() = default;
  HostTensor(std::vector<int64_t> dims, std::vector<T> contents)
      : values(std::move(contents)), shape(std::move(dims)) {}
  HostTensor(std::vector<int64_t> dims, T fill) : shape(std::move(dims)) {
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    values.assign(static_cast<size_t>(count), fill);
  }
  Tensor view() {
    Tensor tensor{.data = reinterpret_cast<std::byte*>(values.data()), .dtype = kType};
    tensor.rank = static_cast<uint8_t>(shape.size());
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) {
      tensor.shape[i] = shape[i];
      tensor.stride[i] = stride;
    }
    return tensor;
  }
};

// Normal values from a seed: the same on every machine up to rounding of the library's log and cos.
inline HostTensor<float> RandomTensor(std::vector<int64_t> shape, uint32_t seed, float spread = 1) {
  HostTensor<float> tensor(std::move(shape), 0.0f);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  for (float& value : tensor.values) value = normal(random);
  return tensor;
}

inline HostTensor<int32_t> IntTensor(std::vector<int32_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return {{count}, std::move(values)};
}

// Runs ranges on threads of its own, in whatever order they come.
class ThreadContext : public KernelContext {
 public:
  explicit ThreadContext(Isa use_isa = Isa::kAvx2, int use_workers = 1, Numerics use_numerics = Numerics::kExact)
      : scratch_(static_cast<size_t>(use_workers)) {
    isa = use_isa;
    workers = use_workers;
    numerics = use_numerics;
  }
  std::span<std::byte> Scratch(int worker, size_t bytes) override {
    std::vector<std::byte>& memory = scratch_[static_cast<size_t>(worker)];
    // Filled with NaN, so that a kernel that reads what it has not written is seen.
    memory.assign(bytes + 64, std::byte{0xff});
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    return {memory.data() + (64 - address % 64) % 64, bytes};
  }
  int64_t barriers() const { return barriers_; }

 private:
  void RunParallel(int64_t count, int64_t grain, RangeFn run, void* state) override {
    ++barriers_;
    std::atomic<int64_t> next = 0;
    auto work = [&](int worker) {
      for (int64_t begin = next.fetch_add(grain); begin < count; begin = next.fetch_add(grain))
        run(state, begin, std::min(count, begin + grain), worker);
    };
    std::vector<std::thread> threads;
    for (int worker = 1; worker < workers; ++worker) threads.emplace_back(work, worker);
    work(0);
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<std::vector<std::byte>> scratch_;
  int64_t barriers_ = 0;
};

// The instruction sets that this machine can run; kernels are tested under each.
std::vector<Isa> TestIsas();

// Largest |a - b| / (|b| + floor).
double MaxRelativeError(std::span<const float> a, std::span<const float> b, double floor);

}  // namespace vt::testing
