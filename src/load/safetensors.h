// Safetensors files and folders, mapped: one file, or shards named by model.safetensors.index.json.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "load/tensor_info.h"

namespace vllm {

// The header of one file. Throws base::Exception (kBadFile) of one line naming file, tensor and field, by the rules of
// the safetensors library: header at most 100 MB, UTF-8, an object; sizes equal shape × dtype; the byte ranges cover
// the data without holes or overlap. Duplicate names are refused too. The spans point into `bytes`; file_index is 0.
std::vector<TensorInfo> ReadSafetensorsHeader(std::span<const std::byte> bytes, const std::string& name);

struct SafetensorsFolder {
  std::vector<TensorInfo> tensors = {};  // by file, then by offset
  std::vector<std::shared_ptr<const base::MappedFile>> files = {};
  std::vector<std::shared_ptr<const std::vector<std::byte>>> copies = {};  // what misaligned tensors point into
};

// All weights of a folder: what model.safetensors.index.json names (every tensor of the index must be in its shard;
// what shards hold beyond the index is there too, and no name is in two shards), else model.safetensors, else the only
// safetensors file. Shards lie inside the folder; symbolic links may lead to anywhere inside it, or to the blobs of the
// same repository when the folder is a snapshot of a hub cache, and nothing else is opened.
// Pickles and folders without weights are refused by name with the remedy.
SafetensorsFolder OpenSafetensorsFolder(const std::string& folder);

// The shard names of an index file, each checked to stay inside the folder; parallel to `tensors`. Opens nothing.
struct SafetensorsIndex {
  std::vector<std::string> tensors = {};
  std::vector<std::string> shards = {};
};
SafetensorsIndex ReadSafetensorsIndex(std::string_view json, const std::string& name);

}  // namespace vllm
