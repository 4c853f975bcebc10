// Fuzz target: GGUF from bytes, and as a split model of two files; every value, and a block of every tensor, is read.
// Covers: src/load/gguf.cc src/load/gguf_split.cc
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "load/gguf.h"
#include "load/gguf_split.h"
#include "quant/format.h"

namespace {

// Two names of one split model in a folder of this process.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gguf-fuzz-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) abort();
    path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string Part(int64_t index) const { return vllm::GgufPartName((path / "m").string(), index, 2); }
};

void ReadAll(const vllm::GgufFile& file) {
  size_t sum = 0;
  for (const vllm::MetaValue& value : file.metadata()) {
    if (file.Meta(value.key) != &value) abort();
    sum += value.AsBool().has_value() + value.AsInt().has_value() + value.AsDouble().has_value();
    if (const auto text = value.AsString()) sum += text->size();
    if (const auto texts = value.AsStrings()) sum += texts->size() == value.count ? 0 : size_t{1} << 40;
    if (const auto numbers = value.AsInts()) sum += numbers->size();
    if (const auto numbers = value.AsDoubles()) sum += numbers->size();
    if (const auto numbers = value.AsFloats()) sum += numbers->size();
  }
  for (const vllm::TensorInfo& tensor : file.tensors()) {
    const vt::Format& format = vt::GetFormat(tensor.format);
    std::vector<float> block(static_cast<size_t>(format.block_elements));
    const auto last = tensor.data.last(static_cast<size_t>(format.block_bytes));  // both ends are inside the file
    format.dequantize(tensor.data.data(), format.block_elements, block.data());
    format.dequantize(last.data(), format.block_elements, block.data());
    if (tensor.elements() <= 0) abort();
  }
  if (sum >= size_t{1} << 40) abort();
  static_cast<void>(file.ToConfig());
}

void Write(const std::string& path, std::span<const uint8_t> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

// The first byte chooses: even, the rest is one file; odd, two 16-bit words say where the second part begins and which
// part is opened, the rest is both files.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  const std::span<const uint8_t> input(data, size);
  try {
    if (size >= 5 && input[0] % 2 == 1) {
      const auto rest = input.subspan(5);
      const size_t cut = std::min<size_t>(rest.size(), static_cast<size_t>(input[1] | input[2] << 8));
      Write(folder.Part(0), rest.first(cut));
      Write(folder.Part(1), rest.subspan(cut));
      ReadAll(*vllm::GgufFile::Open(folder.Part(input[3] % 2)));
    } else if (size >= 1) {
      // A buffer of its own size, so that a read beyond it is seen; aligned as a mapping is.
      const size_t length = size - 1;
      const std::unique_ptr<std::byte, decltype(&::free)> copy(
          static_cast<std::byte*>(::aligned_alloc(64, (length + 64) / 64 * 64)), &::free);
      std::byte* end_aligned = copy.get();
      std::copy_n(reinterpret_cast<const std::byte*>(data) + 1, length, end_aligned);
      ReadAll(*vllm::GgufFile::FromBytes({end_aligned, length}, "fuzz.gguf"));
    }
  } catch (const base::Exception&) {
    // A refusal is what a bad file gets; anything else ends the run.
  }
  return 0;
}
