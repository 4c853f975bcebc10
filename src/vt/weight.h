// Weights of linears: bytes in a number format, never a Tensor; and the slot that owns them for a layer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quant/format.h"
#include "vt/buffer.h"
#include "vt/device.h"

namespace vt {

enum class LayoutId : int8_t {
  kFile,  // rows as the model file stores them: n rows of RowBytes(format, k)
  kR16,   // groups of 16 rows side by side (vt/cpu/r16.h); a group takes 16 row_bytes
};

// One stored matrix [n, k] of a linear. A merged linear (QKV, gate/up) is a list of these, each with its own format.
struct Segment {
  FormatId format = FormatId::kF32;
  LayoutId layout = LayoutId::kFile;
  int64_t n = 0;
  int64_t row_bytes = 0;
  std::byte* data = nullptr;  // device address; in kFile row r begins at data + r * row_bytes
};

// y[rows, n] = x[rows, k] * W[n, k]^T, W being the segments stacked. Immutable after loading.
struct PackedWeight {
  DeviceId device = {};
  int64_t n = 0, k = 0;
  std::vector<Segment> segments = {};
  uint64_t source_bytes = 0;                             // in the file
  uint64_t resident_bytes = 0;                           // of own memory; 0 while the mapped file serves
  std::vector<std::shared_ptr<const void>> owners = {};  // mapped files or buffers that hold the bytes
};

// Where a tensor of the file comes from, already transformed: n rows of k weights in one format.
struct WeightSource {
  std::string name;  // of the tensor, for messages
  FormatId format = FormatId::kF32;
  int64_t n = 0, k = 0;
  std::span<const std::byte> bytes = {};
  std::shared_ptr<const void> owner = nullptr;  // keeps `bytes` alive
  // Gives the memory of a part of `bytes` back that was packed and is not read again (a mapped file); may be empty.
  std::function<void(std::span<const std::byte> part)> drop = {};
};

enum class WeightUse : int8_t {
  kMatrix,  // multiplied with (and perhaps rows of it are looked up)
  kRows,    // rows are looked up only
};

// How a platform stores the weights that it multiplies with. Thread-safe.
class Packer {
 public:
  virtual ~Packer() = default;
  // Bytes that a weight takes in the platform's layout; 0: it is used as the file stores it.
  virtual int64_t PackedBytes(const WeightSource& source, WeightUse use) const = 0;
  // Writes PackedBytes bytes to `out`, 64-byte aligned, describes them, and drops the source as it goes. Only for
  // weights with PackedBytes above 0.
  virtual Segment Pack(const WeightSource& source, std::byte* out) = 0;
};

// Owned by the layer that uses the weight, never looked up by address. Load and Release belong to start-up and
// shut-down of one thread; Get is thread-safe between them.
class ResidentSlot {
 public:
  std::shared_ptr<const PackedWeight> Get() const { return weight_; }
  // Stacks the sources (equal k) on the device: packed where its platform packs, otherwise host devices refer to the
  // bytes and others copy them.
  void Load(std::span<const WeightSource> sources, WeightUse use, Platform& platform);
  void Release() { weight_.reset(); }

 private:
  std::shared_ptr<const PackedWeight> weight_;
};

}  // namespace vt
