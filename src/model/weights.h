// The weights of a model on a device: linears in resident slots, norms and biases in one buffer.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "model/bind/bind.h"
#include "vt/buffer.h"
#include "vt/weight.h"

namespace vllm {

// Immutable after construction; thread-safe.
class ModelWeights {
 public:
  // Called with the fraction done; false stops the load (kCancelled is thrown).
  using Progress = std::function<bool(double)>;
  // Throws base::Exception; kOutOfMemory when the device cannot hold them.
  ModelWeights(const spec::Model& model, const Bindings& bindings, vt::Platform& platform, const Progress& progress);

  // A merged linear by its first part: kQ is Q, K and V stacked, kGate is gate and up. kHead of a tied model is kEmbed.
  const vt::PackedWeight* Linear(Part part, int layer = -1) const;
  // f32 vector on the device; an absent Tensor when the model has none. The biases of a merged linear are merged.
  vt::Tensor Vector(Part part, int layer = -1) const;
  std::span<const float> rope_factors() const { return rope_factors_; }

  uint64_t source_bytes() const { return source_bytes_; }
  uint64_t resident_bytes() const { return resident_bytes_; }

 private:
  std::map<std::pair<Part, int>, vt::ResidentSlot> slots_;
  std::map<std::pair<Part, int>, vt::Tensor> vectors_;
  vt::Buffer constants_;
  std::vector<float> rope_factors_;
  uint64_t source_bytes_ = 0, resident_bytes_ = 0;
};

}  // namespace vllm
