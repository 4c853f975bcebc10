// The opaque test device: two reserved ranges a fixed distance apart, and a lazy queue over the plain kernels.
#include "vt/opaque/platform.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "vt/kernel_context.h"
#include "vt/weight.h"

namespace vt {
namespace {

// Address space only. Large enough that a long test run never comes round, small enough for a sanitizer's layout.
constexpr size_t kRangeBytes = size_t{256} << 30;
constexpr size_t kAlignment = 64;

// The process's two ranges: device addresses, never accessible, and the bytes behind them. Thread-safe.
class Arena {
 public:
  static Arena& The() {
    static Arena arena;
    return arena;
  }

  std::byte* Allocate(size_t bytes) {
    std::lock_guard lock(mutex_);
    const size_t span = RoundUp(bytes == 0 ? 1 : bytes, kAlignment);
    const size_t pages = RoundUp(span, page_);
    if (next_ + pages + page_ > kRangeBytes)
      base::Throw(base::ErrorCode::kOutOfMemory, "opaque device: ", bytes, " bytes do not fit the rest of its ",
                  kRangeBytes, " bytes of addresses; addresses are never reused, restart the process");
    if (mprotect(bytes_ + next_, pages, PROT_READ | PROT_WRITE) != 0)
      base::Throw(base::ErrorCode::kOutOfMemory, "opaque device: cannot allocate ", bytes, " bytes");
    // The buffer ends where its guard page begins, up to the alignment.
    std::byte* data = addresses_ + next_ + pages - span;
    next_ += pages + page_;
    live_[data] = bytes;
    return data;
  }

  void Free(std::byte* data) {
    std::lock_guard lock(mutex_);
    const auto buffer = live_.find(data);
    if (buffer == live_.end()) return;
    const size_t span = RoundUp(buffer->second == 0 ? 1 : buffer->second, kAlignment);
    std::byte* begin = addresses_ + static_cast<size_t>(data - addresses_) / page_ * page_;
    // A fresh mapping gives the memory back and takes the access away.
    mmap(begin + (bytes_ - addresses_), RoundUp(span, page_), PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    live_.erase(buffer);
  }

  // Where the bytes of [data, data + size) lie; CHECKs that they are in one live buffer.
  std::byte* Translate(std::byte* data, int64_t size) {
    std::lock_guard lock(mutex_);
    auto buffer = live_.upper_bound(data);
    CHECK(buffer != live_.begin(), "opaque device: an address that is in no buffer");
    --buffer;
    CHECK(static_cast<size_t>(data - buffer->first) + static_cast<size_t>(size) <= buffer->second,
          "opaque device: ", size, " bytes at ", data - buffer->first, " of a buffer of ", buffer->second,
          ", or host memory, or a freed buffer");
    return data + (bytes_ - addresses_);
  }

 private:
  Arena() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))), addresses_(Reserve()), bytes_(Reserve()) {}
  static size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }
  static std::byte* Reserve() {
    void* range = mmap(nullptr, kRangeBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
      base::Throw(base::ErrorCode::kOutOfMemory, "opaque device: cannot reserve ", kRangeBytes,
                  " bytes of addresses; raise the limit on virtual memory (ulimit -v)");
    return static_cast<std::byte*>(range);
  }

  const size_t page_;
  std::byte* const addresses_;
  std::byte* const bytes_;
  std::mutex mutex_;
  size_t next_ = 0;                         // offset of the first address that was never used
  std::map<std::byte*, size_t> live_ = {};  // by device address: bytes asked for
};

// The tensor as a kernel or copy may dereference it.
Tensor Translated(Tensor tensor) {
  if (!tensor) return tensor;
  CHECK(tensor.device.type == DeviceType::kOpaque, "opaque device: an operand lies on ",
        DeviceName(tensor.device.type));
  CHECK(tensor.is_contiguous(), "opaque device: an operand is not contiguous");
  tensor.data = Arena::The().Translate(tensor.data, tensor.bytes());
  return tensor;
}

PackedWeight Translated(const PackedWeight& weight) {
  CHECK(weight.device.type == DeviceType::kOpaque, "opaque device: a weight lies on ", DeviceName(weight.device.type));
  PackedWeight copy = weight;
  for (Segment& segment : copy.segments)
    segment.data = Arena::The().Translate(segment.data, segment.n * segment.row_bytes);
  return copy;
}

// Ops that hold a weight, as opposed to a tensor of that name.
template <class Op>
concept HasWeight = std::is_same_v<decltype(Op::weight), const PackedWeight*>;

// One thread, memory of its own.
class SerialContext final : public KernelContext {
 public:
  std::span<std::byte> Scratch(int, size_t bytes) override {
    if (memory_.size() < bytes + kAlignment) memory_.resize(bytes + kAlignment);
    const size_t misalignment = reinterpret_cast<uintptr_t>(memory_.data()) % kAlignment;
    return {memory_.data() + (kAlignment - misalignment) % kAlignment, bytes};
  }

 private:
  void RunParallel(int64_t count, int64_t grain, RangeFn run, void* state) override {
    for (int64_t begin = 0; begin < count; begin += grain) run(state, begin, std::min(count, begin + grain), 0);
  }
  std::vector<std::byte> memory_ = {};
};

class OpaqueQueue final : public Queue {
 public:
  void Launch(const OpKernel& kernel, const OpArgs& args, const KernelOptions& options) override {
    // Found here already, with the caller on the stack; found again in Run if the buffer is gone by then.
    OpArgs copy = args;
    std::visit([](auto& op) { op.ForEach([](Tensor& tensor) { Translated(tensor); }); }, copy);
    commands_.emplace_back(LaunchCommand{kernel, args, options});
    ++recorded_;
  }

  void CopyAsync(Tensor dst, Tensor src) override {
    CHECK(dst.dtype == src.dtype && dst.rank == src.rank && dst.shape == src.shape, "copy of ", src.bytes(),
          " bytes into ", dst.bytes(), ": shapes or dtypes differ");
    CHECK(dst.is_contiguous() && src.is_contiguous(), "copies are of contiguous tensors");
    HostAddress(dst), HostAddress(src);
    commands_.emplace_back(CopyCommand{dst, src});
    ++recorded_;
  }

  Event Record() override { return {recorded_}; }

  void Wait(Event event) override {
    CHECK(event.sequence <= recorded_, "an event of another queue");
    while (executed_ < event.sequence) {
      const Command command = std::move(commands_.front());
      commands_.pop_front();
      ++executed_;
      std::visit([this](const auto& c) { Run(c); }, command);
    }
  }

 private:
  struct LaunchCommand {
    OpKernel kernel = {};
    OpArgs args = {};
    KernelOptions options = {};
  };
  struct CopyCommand {
    Tensor dst = {}, src = {};
  };
  using Command = std::variant<LaunchCommand, CopyCommand>;

  // The host's own address of either side of a copy.
  static std::byte* HostAddress(const Tensor& tensor) {
    if (tensor.device.type == DeviceType::kOpaque) return Translated(tensor).data;
    CHECK(tensor.device.type == DeviceType::kCpu || tensor.device.type == DeviceType::kRef,
          "opaque device: a copy with ", DeviceName(tensor.device.type));
    return tensor.data;
  }

  void Run(const CopyCommand& copy) {
    if (copy.dst.bytes() > 0)
      std::memmove(HostAddress(copy.dst), HostAddress(copy.src), static_cast<size_t>(copy.dst.bytes()));
  }

  void Run(const LaunchCommand& launch) {
    OpArgs args = launch.args;
    PackedWeight weight;
    std::visit(
        [&]<class Op>(Op& op) {
          op.ForEach([](Tensor& tensor) { tensor = Translated(tensor); });
          if constexpr (HasWeight<Op>) {
            if (op.weight == nullptr) return;
            weight = Translated(*op.weight);
            op.weight = &weight;
          }
        },
        args);
    context_.numerics = launch.options.numerics;
    launch.kernel.run(args, context_);
    CountExecution(launch.kernel);
  }

  std::deque<Command> commands_ = {};
  uint64_t recorded_ = 0, executed_ = 0;
  SerialContext context_;
};

class OpaquePlatform final : public Platform {
 public:
  OpaquePlatform() {
    Arena::The();
    info_.type = DeviceType::kOpaque;
    info_.name = "reference kernels on memory that the host cannot touch";
    info_.host_memory = false;
    info_.total_memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  const PlatformInfo& info() const override { return info_; }
  Buffer Allocate(size_t bytes) override {
    return Buffer(device(), Arena::The().Allocate(bytes), bytes,
                  [](std::byte* data, size_t) { Arena::The().Free(data); });
  }
  std::unique_ptr<Queue> MakeQueue() override { return std::make_unique<OpaqueQueue>(); }

 private:
  PlatformInfo info_;
};

}  // namespace

std::shared_ptr<Platform> MakeOpaquePlatform() { return std::make_shared<OpaquePlatform>(); }

}  // namespace vt
