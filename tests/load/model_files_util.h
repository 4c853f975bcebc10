// Writers of GGUF and safetensors files for tests, which can also write wrong ones; temporary folders.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "load/gguf.h"

namespace vllm::testing {

// A fresh folder, removed with all it holds.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  // Writes a file below the folder (with the folders between) and returns its path.
  std::string Write(std::string_view name, std::string_view bytes) const;

 private:
  std::string path_;
};

// Little-endian bytes of a number, appended.
template <class T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string Floats(std::span<const float> values);

// Writes what it is told; nothing is checked. Keys and names may repeat, counts and offsets may lie.
struct GgufWriter {
  struct Tensor {
    std::string name = {};
    std::vector<uint64_t> dims = {};  // as in the file: innermost first
    uint32_t type = 0;
    std::string data = {};
    int64_t offset = -1;  // -1: where the data lies
  };
  uint32_t version = 3;
  std::vector<std::pair<std::string, std::string>> keys = {};  // name, type and value as bytes
  std::vector<Tensor> tensors = {};
  uint64_t alignment = 32;
  int64_t key_count = -1;  // -1: the truth
  int64_t tensor_count = -1;

  template <class T>
  void AddNumber(std::string name, MetaType type, T value) {
    std::string bytes;
    Put(bytes, static_cast<uint32_t>(type));
    Put(bytes, value);
    keys.emplace_back(std::move(name), std::move(bytes));
  }
  void AddString(std::string name, std::string_view value);
  void AddStrings(std::string name, std::span<const std::string> values);
  // An array whose elements and count are given as they shall stand in the file.
  void AddArray(std::string name, uint32_t element_type, uint64_t count, std::string_view elements);
  // An F32 tensor; `shape` outermost first.
  void AddTensor(std::string name, std::vector<int64_t> shape, std::span<const float> values);

  std::string Bytes() const;
  size_t HeaderBytes() const;  // before the padding that precedes the data
};

// A small Llama-like model: two layers, F32, 20 KB.
GgufWriter SmallModel();

// "header length | header | data".
std::string SafetensorsBytes(std::string_view header, std::string_view data);

struct SafetensorsTensor {
  std::string name = {};
  std::string dtype = {};
  std::vector<int64_t> shape = {};
  std::string data = {};
};
std::string SafetensorsBytes(std::span<const SafetensorsTensor> tensors);

// The message with which `call` throws base::Exception; "" when it does not throw. Fails the test when the message has
// more than one line.
template <class Call>
base::Error ErrorOf(Call call) {
  try {
    call();
  } catch (const base::Exception& exception) {
    return exception.error();
  }
  return {.code = base::ErrorCode::kInternal, .message = ""};
}

}  // namespace vllm::testing
