// A checkpoint turned into a spec, its bindings and its weights on a device.
#pragma once
#include <memory>
#include <string>

#include "load/checkpoint.h"
#include "model/bind/bind.h"
#include "model/spec.h"
#include "model/weights.h"

namespace vllm {

// Immutable after construction; thread-safe.
class LoadedModel {
 public:
  // Opens a .gguf file or a folder; refuses configuration, missing and left-over tensors before any weight is read.
  // Throws base::Exception of one line. `path` is as LoadCheckpoint takes it.
  static std::unique_ptr<LoadedModel> FromModelDir(const std::string& path);
  // Puts the weights on the device. Once, before weights() is used.
  void LoadWeights(vt::Platform& platform, const ModelWeights::Progress& progress = {});

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const spec::Model& spec() const { return spec_; }
  const Bindings& bindings() const { return *bindings_; }
  const ModelWeights& weights() const;
  int64_t parameters() const;
  // "Q4_1 106 MB, Q8_0 30 MB": formats by bytes, largest first.
  std::string FormatSummary() const;
  // One paragraph for people: sizes, heads, windows, rope, norms.
  std::string Card() const;

 private:
  explicit LoadedModel(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {}
  Checkpoint checkpoint_;
  spec::Model spec_;
  std::unique_ptr<Bindings> bindings_;
  std::unique_ptr<ModelWeights> weights_;
};

}  // namespace vllm
