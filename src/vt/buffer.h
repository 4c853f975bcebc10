// Buffer (owned device memory), Queue (ordered work with events) and Platform (what a device can do).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "vt/device.h"
#include "vt/numerics.h"
#include "vt/ops.h"
#include "vt/tensor.h"

namespace vt {

// Owned device memory, zero-filled lazily by the system. Move-only; freed on destruction, which must follow the last
// use.
class Buffer {
 public:
  Buffer() = default;
  Buffer(DeviceId device, std::byte* data, size_t size, void (*free)(std::byte*, size_t))
      : device_(device), data_(data), size_(size), free_(free) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { Reset(); }

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  DeviceId device() const { return device_; }
  // A contiguous view at a byte offset; CHECKs that it lies inside.
  Tensor View(DType dtype, std::initializer_list<int64_t> shape, size_t offset = 0) const;

 private:
  void Reset() noexcept;
  DeviceId device_ = {};
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  void (*free_)(std::byte*, size_t) = nullptr;
};

// A point in a queue's order. Default-constructed: already passed.
struct Event {
  uint64_t sequence = 0;
};

struct KernelOptions {
  Numerics numerics = Numerics::kDefault;
};

// Ordered asynchronous work of one device. Used by one thread at a time. Host buffers handed to it live until their
// event.
class Queue {
 public:
  virtual ~Queue() = default;
  // Runs one op with the kernel that the op table holds for this device.
  virtual void Launch(const OpKernel& kernel, const OpArgs& args, const KernelOptions& options) = 0;
  // Copies bytes between host and device or within either; shapes and dtypes must agree.
  virtual void CopyAsync(Tensor dst, Tensor src) = 0;
  virtual Event Record() = 0;
  // Blocks the caller until the event has passed. A kernel's InternalError is rethrown here or from Launch.
  virtual void Wait(Event event) = 0;
  void Synchronize() { Wait(Record()); }
};

// What a device can do; shared code asks this and never a device macro.
struct PlatformInfo {
  DeviceType type = DeviceType::kCpu;
  std::string name;           // "AMD EPYC, AVX-512 VNNI BF16"
  bool host_memory = true;    // the host may dereference Tensor.data
  uint64_t total_memory = 0;  // bytes
  int threads = 1;
  std::string isa;  // "avx2", "avx512", "amx"; "" elsewhere
};

class Packer;

// One device. Thread-safe but for the queues it makes.
class Platform {
 public:
  virtual ~Platform() = default;
  virtual const PlatformInfo& info() const = 0;
  // Throws base::Exception kOutOfMemory with the size.
  virtual Buffer Allocate(size_t bytes) = 0;
  virtual std::unique_ptr<Queue> MakeQueue() = 0;
  // Null: weights are used as the file stores them. Lives as long as the platform.
  virtual Packer* packer() { return nullptr; }
  // Calls f(i) for every i in [0, count), in any order, on the threads that serve this device's host side, and returns
  // when all are done. `f` must not throw and must not come back here.
  template <class F>
  void ForEachOnHost(int64_t count, F&& f) {
    RunOnHost(
        count,
        [](void* state, int64_t begin, int64_t end, int) {
          for (int64_t i = begin; i < end; ++i) (*static_cast<std::remove_reference_t<F>*>(state))(i);
        },
        const_cast<void*>(static_cast<const void*>(&f)));
  }
  DeviceId device() const { return {info().type, 0}; }

 protected:
  // run(state, begin, end, worker) over ranges that cover [0, count); one thread unless the platform has more.
  virtual void RunOnHost(int64_t count, void (*run)(void* state, int64_t begin, int64_t end, int worker), void* state) {
    run(state, 0, count, 0);
  }
};

struct PlatformOptions {
  int threads = 0;       // 0: physical cores within affinity and cgroup limit
  std::string isa = {};  // force "avx2", "avx512", "amx"; empty: the best found
};

// Throws base::Exception when the device or the forced ISA is not there.
std::shared_ptr<Platform> MakePlatform(DeviceType type, const PlatformOptions& options = {});

}  // namespace vt
