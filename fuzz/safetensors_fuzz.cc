// Fuzz target: a safetensors header, a shard index, and a folder of two shards; the ends of every tensor are read.
// Covers: src/load/safetensors.cc
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/safetensors.h"

namespace {

struct Folder {
  std::string path;
  Folder() {
    path = (std::filesystem::temp_directory_path() / "safetensors-fuzz-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) abort();
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  void Write(const std::string& name, std::span<const uint8_t> bytes) const {
    std::ofstream(path + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void Remove(const std::string& name) const {
    std::error_code ignored;
    std::filesystem::remove(path + "/" + name, ignored);
  }
};

volatile unsigned sink = 0;

void ReadEnds(std::span<const vllm::TensorInfo> tensors) {
  for (const vllm::TensorInfo& tensor : tensors) {
    if (tensor.elements() < 0 || tensor.dtype.empty()) abort();
    if (tensor.data.empty()) continue;
    sink = sink + std::to_integer<unsigned>(tensor.data.front()) + std::to_integer<unsigned>(tensor.data.back());
  }
}

// Cuts of the input: two 16-bit lengths, then index, first shard and second shard.
void ReadFolder(std::span<const uint8_t> input, uint8_t mode) {
  static const Folder folder;
  if (input.size() < 4) return;
  const auto word = [&](size_t at) { return static_cast<size_t>(input[at] | input[at + 1] << 8); };
  const auto rest = input.subspan(4);
  const size_t first = std::min(word(0), rest.size()), second = std::min(word(2), rest.size() - first);
  const bool indexed = mode % 8 == 2, pickle = mode % 8 == 4;
  folder.Remove("model.safetensors.index.json");
  folder.Remove("pytorch_model.bin");
  for (const char* name : {"a.safetensors", "b.safetensors"}) folder.Remove(name);
  if (indexed) folder.Write("model.safetensors.index.json", rest.first(first));
  if (pickle) folder.Write("pytorch_model.bin", rest.first(first));
  if (!pickle && mode % 8 != 5) folder.Write("a.safetensors", rest.subspan(first, second));
  if (indexed || mode % 8 == 6) folder.Write("b.safetensors", rest.subspan(first + second));
  const vllm::SafetensorsFolder read = vllm::OpenSafetensorsFolder(folder.path);
  ReadEnds(read.tensors);
  for (const vllm::TensorInfo& tensor : read.tensors) {
    const auto address = reinterpret_cast<uintptr_t>(tensor.data.data());
    if (tensor.dtype == "F32" && address % 4 != 0) abort();
  }
}

}  // namespace

// The first byte chooses what the rest is: 0 a file, 1 an index, 2 and above a folder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  try {
    if (data[0] % 8 == 0) {
      const std::vector<uint8_t> copy(rest.begin(), rest.end());  // so that a read beyond the end is seen
      ReadEnds(vllm::ReadSafetensorsHeader(std::as_bytes(std::span(copy)), "fuzz.safetensors"));
    } else if (data[0] % 8 == 1) {
      const vllm::SafetensorsIndex index =
          vllm::ReadSafetensorsIndex({reinterpret_cast<const char*>(rest.data()), rest.size()}, "fuzz.index.json");
      for (const std::string& shard : index.shards) {
        const std::string path = "/" + shard + "/";
        if (path.find("/../") != path.npos || path.find("//") != path.npos) abort();
      }
    } else {
      ReadFolder(rest, data[0]);
    }
  } catch (const base::Exception&) {
    // A refusal is what a bad file gets; anything else ends the run.
  }
  return 0;
}
