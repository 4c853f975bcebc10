// GGUF v2 and v3 files, mapped: metadata and the table of tensors, every length checked before it is used.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "load/config.h"
#include "load/tensor_info.h"

namespace vllm {

// Value types of GGUF's metadata, by their numbers in the file.
enum class MetaType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// One value of the metadata. Views point into the mapped file and live as long as the GgufFile. Immutable, thread-safe.
struct MetaValue {
  std::string_view key;
  MetaType type = MetaType::kU8;  // of the value, or of the elements of an array
  bool is_array = false;
  uint64_t count = 1;                // elements
  std::span<const std::byte> bytes;  // the value as it lies in the file, without the array's head

  // Scalars; nullopt when the value has another type. Integers of all widths read as int64 (a U64 beyond it is
  // nullopt), and integers and floats as double.
  std::optional<bool> AsBool() const;
  std::optional<int64_t> AsInt() const;
  std::optional<double> AsDouble() const;
  std::optional<std::string_view> AsString() const;
  // Arrays, in one pass; nullopt when the value is no array of such elements.
  std::optional<std::vector<std::string_view>> AsStrings() const;
  std::optional<std::vector<int64_t>> AsInts() const;
  std::optional<std::vector<double>> AsDoubles() const;
  std::optional<std::vector<float>> AsFloats() const;
};

// A GGUF model: one file, or all files of a split one. Immutable, thread-safe.
class GgufFile {
 public:
  // Opening the first part of a split file opens all of them; another part is refused and names the first.
  // Throws base::Exception with one line that names file and field. Reads header pages only, no weight.
  static std::shared_ptr<const GgufFile> Open(const std::string& path);
  // The same from bytes that the caller keeps alive (for fuzzing); `name` stands in messages. Not for split files.
  static std::shared_ptr<const GgufFile> FromBytes(std::span<const std::byte> bytes, std::string name);

  // Null when the key is not there.
  const MetaValue* Meta(std::string_view key) const;
  std::span<const MetaValue> metadata() const { return metadata_; }
  // In file order; file_index counts the parts.
  std::span<const TensorInfo> tensors() const { return tensors_; }
  std::span<const std::shared_ptr<const base::MappedFile>> files() const { return files_; }
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  const std::string& path() const { return path_; }
  // All scalars, and arrays of numbers, booleans and strings except those under "tokenizer." (hundreds of thousands
  // long: read them with Meta), as a flat Config whose keys are the file's.
  Config ToConfig() const;

 private:
  friend class GgufReader;
  std::string path_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  std::vector<MetaValue> metadata_;  // in file order
  std::vector<uint32_t> sorted_;     // indices into metadata_, by key
  std::vector<TensorInfo> tensors_;
  std::vector<std::shared_ptr<const base::MappedFile>> files_;
};

}  // namespace vllm
