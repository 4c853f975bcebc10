// A model's files as one thing: configuration, named tensors over mapped bytes, metadata.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "load/config.h"
#include "load/gguf.h"
#include "load/tensor_info.h"

namespace vllm {

// Immutable after LoadCheckpoint but for the Config's record of reads; tensors are safe to read from any thread.
struct Checkpoint {
  enum class Dialect { kHf, kGguf };
  Dialect dialect = Dialect::kHf;
  std::string path = {};          // the folder, or the (first) .gguf file
  Config config = {};             // config.json, or GGUF metadata ("llama.block_count", …)
  Config generation_config = {};  // generation_config.json; empty when there is none, and for GGUF
  std::vector<TensorInfo> tensors = {};
  std::vector<std::shared_ptr<const base::MappedFile>> files = {};
  std::vector<std::shared_ptr<const std::vector<std::byte>>> copies = {};
  std::shared_ptr<const GgufFile> gguf = {};                    // null for HF
  std::unordered_map<std::string_view, uint32_t> by_name = {};  // views of tensors[i].name

  Checkpoint() = default;
  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint&&) = default;
  Checkpoint(const Checkpoint&) = delete;  // by_name and the tensors' spans point into it
  Checkpoint& operator=(const Checkpoint&) = delete;

  // Null when there is no tensor of this name.
  const TensorInfo* Find(std::string_view name) const;
  // A GGUF file's metadata value; null when absent and for HF.
  const MetaValue* Meta(std::string_view key) const { return gguf ? gguf->Meta(key) : nullptr; }
  // Sum of all tensors' bytes.
  uint64_t tensor_bytes() const;
  // Throws kUnsupported naming tensor, dtype and remedy unless weights of this tensor's type are served: for HF F32,
  // F16 and BF16; for GGUF every type of the format table. Call it for each tensor that is used.
  void RequireServed(const TensorInfo& tensor) const;
};

// Opens a .gguf file, a folder with config.json and safetensors, or a folder with exactly one GGUF model. Reads headers
// and configuration only; weights stay mapped. Throws base::Exception with one line naming file, field and remedy; a
// path that is neither is refused with "model path is not a directory".
Checkpoint LoadCheckpoint(const std::string& path);

}  // namespace vllm
