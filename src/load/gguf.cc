// GGUF v2 and v3: a cursor over the mapped bytes that checks every length before it is used.
//
//   "GGUF" | version u32 | tensor count u64 | key count u64
//   keys:    name, type u32, value;   a string is length u64 + bytes;   an array is element type u32, count u64,
//   elements tensors: name, dimension count u32, extents u64 (innermost first), type u32, offset u64 into the data
//   section data section at the next multiple of general.alignment; every offset is a multiple of it
#include "load/gguf.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include "base/limits.h"
#include "base/result.h"
#include "base/strings.h"
#include "load/gguf_split.h"
#include "load/text.h"
#include "quant/format.h"

namespace vllm {

using base::ErrorCode;
using base::StrCat;

namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"

// Bytes of a scalar; 0 for a string, an array or a number that is no type.
size_t ScalarBytes(uint32_t type) {
  switch (static_cast<MetaType>(type)) {
    case MetaType::kU8:
    case MetaType::kI8:
    case MetaType::kBool:
      return 1;
    case MetaType::kU16:
    case MetaType::kI16:
      return 2;
    case MetaType::kU32:
    case MetaType::kI32:
    case MetaType::kF32:
      return 4;
    case MetaType::kU64:
    case MetaType::kI64:
    case MetaType::kF64:
      return 8;
    case MetaType::kString:
    case MetaType::kArray:
      return 0;
  }
  return 0;
}

template <class T>
T Load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

std::optional<int64_t> IntAt(MetaType type, const std::byte* p) {
  switch (type) {
    case MetaType::kU8:
      return Load<uint8_t>(p);
    case MetaType::kI8:
      return Load<int8_t>(p);
    case MetaType::kU16:
      return Load<uint16_t>(p);
    case MetaType::kI16:
      return Load<int16_t>(p);
    case MetaType::kU32:
      return Load<uint32_t>(p);
    case MetaType::kI32:
      return Load<int32_t>(p);
    case MetaType::kI64:
      return Load<int64_t>(p);
    case MetaType::kU64: {
      const auto value = Load<uint64_t>(p);
      return value <= INT64_MAX ? std::optional<int64_t>(static_cast<int64_t>(value)) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> DoubleAt(MetaType type, const std::byte* p) {
  if (type == MetaType::kF32) return Load<float>(p);
  if (type == MetaType::kF64) return Load<double>(p);
  if (type == MetaType::kU64) return static_cast<double>(Load<uint64_t>(p));
  const auto integer = IntAt(type, p);
  return integer ? std::optional<double>(static_cast<double>(*integer)) : std::nullopt;
}

template <class T, class At>
std::optional<std::vector<T>> Numbers(const MetaValue& value, At at) {
  const size_t size = ScalarBytes(static_cast<uint32_t>(value.type));
  if (!value.is_array || size == 0) return std::nullopt;
  std::vector<T> out;
  out.reserve(value.count);
  for (uint64_t i = 0; i < value.count; ++i) {
    const auto element = at(value.type, value.bytes.data() + i * size);
    if (!element) return std::nullopt;
    out.push_back(static_cast<T>(*element));
  }
  return out;
}

}  // namespace

std::optional<bool> MetaValue::AsBool() const {
  if (is_array || type != MetaType::kBool) return std::nullopt;
  return Load<uint8_t>(bytes.data()) != 0;
}

std::optional<int64_t> MetaValue::AsInt() const { return is_array ? std::nullopt : IntAt(type, bytes.data()); }

std::optional<double> MetaValue::AsDouble() const { return is_array ? std::nullopt : DoubleAt(type, bytes.data()); }

std::optional<std::string_view> MetaValue::AsString() const {
  if (is_array || type != MetaType::kString) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + 8, bytes.size() - 8);
}

std::optional<std::vector<std::string_view>> MetaValue::AsStrings() const {
  if (!is_array || type != MetaType::kString) return std::nullopt;
  std::vector<std::string_view> out;
  out.reserve(count);
  const std::byte* p = bytes.data();
  for (uint64_t i = 0; i < count; ++i) {  // lengths were checked when the file was opened
    const auto length = Load<uint64_t>(p);
    out.emplace_back(reinterpret_cast<const char*>(p) + 8, length);
    p += 8 + length;
  }
  return out;
}

std::optional<std::vector<int64_t>> MetaValue::AsInts() const { return Numbers<int64_t>(*this, IntAt); }
std::optional<std::vector<double>> MetaValue::AsDoubles() const { return Numbers<double>(*this, DoubleAt); }
std::optional<std::vector<float>> MetaValue::AsFloats() const { return Numbers<float>(*this, DoubleAt); }

// Reads one file into a GgufFile.
class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, std::string name, int file_index)
      : bytes_(bytes), name_(std::move(name)), file_index_(file_index) {}

  void Read(GgufFile& out) {
    ReadHead(out);
    ReadMetadata(out);
    ReadTensors(out);
  }

 private:
  template <class... Parts>
  [[noreturn]] void Fail(const Parts&... parts) const {
    base::Throw(ErrorCode::kBadFile, name_, ": ", parts...);
  }

  uint64_t left() const { return bytes_.size() - at_; }

  std::span<const std::byte> Take(uint64_t size, std::string_view what) {
    if (size > left()) {
      Fail("is truncated: ", what, " needs ", size, " bytes at byte ", at_, ", the file has ", bytes_.size(),
           "; download it again");
    }
    const auto out = bytes_.subspan(at_, size);
    at_ += size;
    return out;
  }

  template <class T>
  T TakeNumber(std::string_view what) {
    return Load<T>(Take(sizeof(T), what).data());
  }

  std::string_view TakeName(std::string_view what) {
    const auto length = TakeNumber<uint64_t>(what);
    if (length == 0) Fail(what, " at byte ", at_ - 8, " is empty; the file is damaged");
    if (length > base::kMaxGgufNameBytes) {
      Fail(what, " at byte ", at_ - 8, " is ", length, " bytes long, more than ", base::kMaxGgufNameBytes,
           "; the file is damaged");
    }
    const auto text = Take(length, what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  void ReadHead(GgufFile& out) {
    if (bytes_.empty()) Fail("is empty; download it again");
    if (TakeNumber<uint32_t>("the magic number") != kMagic) Fail("is not a GGUF file: it does not start with 'GGUF'");
    const auto version = TakeNumber<uint32_t>("the version");
    if ((version & 0xffff) == 0 && version != 0) {
      base::Throw(ErrorCode::kUnsupported, name_,
                  ": is a byte-swapped (big-endian) GGUF file, which is not supported; "
                  "convert it with gguf-convert-endian FILE little");
    }
    if (version != 2 && version != 3) {
      base::Throw(ErrorCode::kUnsupported, name_, ": version ", version,
                  " of GGUF is not supported (supported: 2, 3); convert the model again with a current converter");
    }
    tensor_count_ = TakeNumber<uint64_t>("the tensor count");
    key_count_ = TakeNumber<uint64_t>("the key count");
    // An entry takes at least this many bytes, so a count is checked before anything is reserved for it.
    CheckCount("tensor count", tensor_count_, 8 + 1 + 4 + 8 + 4 + 8, base::kMaxGgufTensors);
    CheckCount("key count", key_count_, 8 + 1 + 4 + 1, base::kMaxGgufKeys);
    out.version_ = version;
  }

  void CheckCount(std::string_view what, uint64_t count, uint64_t bytes_each, uint64_t limit) const {
    if (count > limit) Fail(what, " ", count, " is above the limit of ", limit, "; the file is damaged");
    if (count > left() / bytes_each) {
      Fail("is truncated: ", what, " ", count, " does not fit into the remaining ", left(),
           " bytes; download it again");
    }
  }

  void ReadMetadata(GgufFile& out) {
    out.metadata_.reserve(key_count_);
    for (uint64_t i = 0; i < key_count_; ++i) {
      MetaValue value;
      value.key = TakeName("a key's name");
      ReadValue(value);
      out.metadata_.push_back(value);
    }
    out.sorted_.resize(out.metadata_.size());
    for (uint32_t i = 0; i < out.sorted_.size(); ++i) out.sorted_[i] = i;
    const auto key_of = [&](uint32_t i) { return out.metadata_[i].key; };
    std::ranges::sort(out.sorted_, {}, key_of);
    const auto twin = std::ranges::adjacent_find(out.sorted_, {}, key_of);
    if (twin != out.sorted_.end()) Fail("key '", Printable(key_of(*twin)), "' is given twice; the file is damaged");
    if (const MetaValue* alignment = out.Meta("general.alignment")) {
      const auto value = alignment->AsInt();
      // Multiples of 8 by the format's definition; they also keep every element aligned in memory.
      if (!value || *value < 8 || *value > static_cast<int64_t>(base::kMaxGgufAlignment) ||
          (*value & (*value - 1)) != 0) {
        Fail("general.alignment ", value ? StrCat("'", *value, "'") : std::string("(not an integer)"),
             " is not a power of two in 8..", base::kMaxGgufAlignment, "; the file is damaged");
      }
      out.alignment_ = static_cast<uint64_t>(*value);
    }
  }

  void ReadValue(MetaValue& value) {
    const std::string what = StrCat("the value of key '", Printable(value.key), "'");
    auto type = TakeNumber<uint32_t>(what);
    if (type == static_cast<uint32_t>(MetaType::kArray)) {
      value.is_array = true;
      type = TakeNumber<uint32_t>(what);
      value.count = TakeNumber<uint64_t>(what);
      if (type == static_cast<uint32_t>(MetaType::kArray)) {
        base::Throw(ErrorCode::kUnsupported, name_, ": key '", Printable(value.key),
                    "' is an array of arrays, which is not supported; the file is damaged or needs a newer version");
      }
    }
    value.type = static_cast<MetaType>(type);
    const size_t scalar = ScalarBytes(type);
    if (value.type == MetaType::kString) {
      TakeStrings(value, what);
    } else if (scalar == 0) {
      Fail("key '", Printable(value.key), "' has type ", type, ", which is no GGUF type; the file is damaged");
    } else if (value.count > left() / scalar) {
      Fail("is truncated: ", what, " needs ", value.count, " elements of ", scalar, " bytes, ", left(),
           " bytes are left; download it again");
    } else {
      value.bytes = Take(value.count * scalar, what);
    }
  }

  void TakeStrings(MetaValue& value, const std::string& what) {
    if (value.count > left() / 8) {
      Fail("is truncated: ", what, " needs ", value.count, " strings, ", left(), " bytes are left; download it again");
    }
    const uint64_t begin = at_;
    for (uint64_t i = 0; i < value.count; ++i) Take(TakeNumber<uint64_t>(what), what);
    value.bytes = bytes_.subspan(begin, at_ - begin);
  }

  struct Pending {
    TensorInfo info;
    uint64_t offset = 0;
    uint64_t size = 0;
  };

  void ReadTensors(GgufFile& out) {
    std::vector<Pending> pending;
    pending.reserve(tensor_count_);
    for (uint64_t i = 0; i < tensor_count_; ++i) pending.push_back(ReadTensor());
    if (pending.empty()) return;
    const uint64_t begin = (at_ + out.alignment_ - 1) / out.alignment_ * out.alignment_;
    const uint64_t available = begin <= bytes_.size() ? bytes_.size() - begin : 0;
    for (Pending& tensor : pending) {
      const std::string head = StrCat("tensor '", Printable(tensor.info.name), "': ");
      if (tensor.offset % out.alignment_ != 0) {
        Fail(head, "offset ", tensor.offset, " is not a multiple of the alignment ", out.alignment_,
             "; the file is damaged");
      }
      if (tensor.offset > available || tensor.size > available - tensor.offset) {
        Fail(head, "its ", tensor.size, " bytes at offset ", tensor.offset, " do not fit into the data section of ",
             available, " bytes; the file is truncated or damaged, download it again");
      }
      tensor.info.data = bytes_.subspan(begin + tensor.offset, tensor.size);
    }
    CheckOverlap(pending);
    for (Pending& tensor : pending) out.tensors_.push_back(std::move(tensor.info));
  }

  Pending ReadTensor() {
    Pending out;
    out.info.name = TakeName("a tensor's name");
    out.info.file_index = file_index_;
    const std::string head = StrCat("tensor '", Printable(out.info.name), "': ");
    const auto dims = TakeNumber<uint32_t>(head);
    if (dims < 1 || dims > 4) Fail(head, "has ", dims, " dimensions, not 1 to 4; the file is damaged");
    int64_t rows = 1;
    for (uint32_t i = 0; i < dims; ++i) {
      const auto extent = TakeNumber<uint64_t>(head);
      if (extent < 1 || extent > INT64_MAX) {
        Fail(head, "dimension ", i, " is ", extent, ", not in 1..2^63-1; the file is damaged");
      }
      out.info.shape.insert(out.info.shape.begin(), static_cast<int64_t>(extent));
      if (i > 0 && __builtin_mul_overflow(rows, static_cast<int64_t>(extent), &rows)) TooLarge(head);
    }
    const auto type = TakeNumber<uint32_t>(head);
    const vt::Format* format = vt::FindFormat(static_cast<int64_t>(type));
    if (format == nullptr) {
      base::Throw(ErrorCode::kUnsupported, name_, ": ", head, "type ", type,
                  " is unknown or no longer in use; use a file in another quantization");
    }
    out.info.format = format->id;
    out.info.dtype = format->name;
    const int64_t k = out.info.shape.back();
    if (k % format->block_elements != 0) {
      Fail(head, "rows of ", k, " weights do not divide into ", format->name, " blocks of ", format->block_elements,
           "; the file is damaged");
    }
    const auto row_bytes = vt::RowBytes(*format, k);
    int64_t size = 0, elements = 0;
    if (!row_bytes || __builtin_mul_overflow(*row_bytes, rows, &size) || __builtin_mul_overflow(k, rows, &elements)) {
      TooLarge(head);
    }
    out.size = static_cast<uint64_t>(size);
    out.offset = TakeNumber<uint64_t>(head);
    return out;
  }

  [[noreturn]] void TooLarge(std::string_view head) const {
    Fail(head, "its dimensions multiply to more than 2^63 bytes; the file is damaged");
  }

  void CheckOverlap(const std::vector<Pending>& tensors) const {
    std::vector<const Pending*> order;
    order.reserve(tensors.size());
    for (const Pending& tensor : tensors) order.push_back(&tensor);
    std::ranges::sort(order, {}, [](const Pending* tensor) { return tensor->offset; });
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i]->offset - order[i - 1]->offset < order[i - 1]->size) {
        Fail("tensors '", Printable(order[i - 1]->info.name), "' and '", Printable(order[i]->info.name),
             "' overlap at offset ", order[i]->offset, "; the file is damaged");
      }
    }
  }

  std::span<const std::byte> bytes_;
  std::string name_;
  int file_index_;
  uint64_t at_ = 0;
  uint64_t tensor_count_ = 0;
  uint64_t key_count_ = 0;
};

const MetaValue* GgufFile::Meta(std::string_view key) const {
  const auto at = std::ranges::lower_bound(sorted_, key, {}, [&](uint32_t i) { return metadata_[i].key; });
  return at != sorted_.end() && metadata_[*at].key == key ? &metadata_[*at] : nullptr;
}

namespace {

void CheckNames(std::span<const TensorInfo> tensors, const std::string& name) {
  if (tensors.empty())
    base::Throw(ErrorCode::kBadFile, name, ": holds no tensors; it is no model, or only its vocabulary");
  if (tensors.size() > base::kMaxModelTensors) {
    base::Throw(ErrorCode::kBadFile, name, ": has more than ", base::kMaxModelTensors, " tensors");
  }
  std::unordered_set<std::string_view> seen;
  seen.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) {
    if (!seen.insert(tensor.name).second) {
      base::Throw(ErrorCode::kBadFile, name, ": tensor '", Printable(tensor.name),
                  "' is given twice; the file is damaged");
    }
  }
}

std::shared_ptr<const base::MappedFile> OpenRegular(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    base::Throw(ErrorCode::kBadFile, PrintablePath(path), ": is not a regular file");  // opening a pipe would wait
  }
  return base::MappedFile::Open(path);
}

// What a file says about the parts of its model.
struct SplitHead {
  int64_t count = 1;
  int64_t part = 0;  // from 0
  std::optional<int64_t> tensors;
};

SplitHead ReadSplitHead(const GgufFile& file, const std::string& name) {
  SplitHead out;
  const auto read = [&](std::string_view key) -> std::optional<int64_t> {
    const MetaValue* value = file.Meta(key);
    if (value == nullptr) return std::nullopt;
    const auto number = value->AsInt();
    if (!number) base::Throw(ErrorCode::kBadFile, name, ": key '", key, "' is not an integer; the file is damaged");
    return number;
  };
  out.count = read("split.count").value_or(1);
  out.part = read("split.no").value_or(0);
  out.tensors = read("split.tensors.count");
  if (out.count < 0 || out.count > static_cast<int64_t>(base::kMaxGgufParts)) {
    base::Throw(ErrorCode::kBadFile, name, ": split.count '", out.count, "' is not in 0..", base::kMaxGgufParts);
  }
  out.count = std::max<int64_t>(out.count, 1);
  if (out.part < 0 || out.part >= out.count) {
    base::Throw(ErrorCode::kBadFile, name, ": split.no '", out.part, "' is not below split.count ", out.count);
  }
  return out;
}

}  // namespace

std::shared_ptr<const GgufFile> GgufFile::FromBytes(std::span<const std::byte> bytes, std::string name) {
  auto out = std::make_shared<GgufFile>();
  out->path_ = name;
  GgufReader(bytes, name, 0).Read(*out);
  if (ReadSplitHead(*out, name).count > 1) {
    base::Throw(ErrorCode::kUnsupported, name, ": is one part of a split model; give the path of its first part");
  }
  CheckNames(out->tensors_, name);
  return out;
}

std::shared_ptr<const GgufFile> GgufFile::Open(const std::string& path) {
  const std::string name = PrintablePath(path);
  auto out = std::make_shared<GgufFile>();
  out->path_ = path;
  out->files_.push_back(OpenRegular(path));
  GgufReader(out->files_[0]->bytes(), name, 0).Read(*out);
  const SplitHead head = ReadSplitHead(*out, name);
  if (head.count > 1) {
    const auto part = ParseGgufPartName(path);
    if (!part || part->count != head.count || part->index != head.part) {
      base::Throw(ErrorCode::kBadFile, name, ": is part ", head.part + 1, " of ", head.count,
                  ", which its name does not say; rename all parts to NAME-00001-of-0000N.gguf");
    }
    if (head.part != 0) {
      base::Throw(ErrorCode::kInvalidArgument, name, ": is part ", head.part + 1, " of ", head.count,
                  "; give the first part instead: ", PrintablePath(GgufPartName(part->prefix, 0, head.count)));
    }
    for (int64_t i = 1; i < head.count; ++i) {
      const std::string part_path = GgufPartName(part->prefix, i, head.count);
      const std::string part_name = PrintablePath(part_path);
      GgufFile next;
      next.files_.push_back(OpenRegular(part_path));
      GgufReader(next.files_[0]->bytes(), part_name, static_cast<int>(i)).Read(next);
      const SplitHead its = ReadSplitHead(next, part_name);
      if (its.count != head.count || its.part != i) {
        base::Throw(ErrorCode::kBadFile, part_name, ": says it is part ", its.part + 1, " of ", its.count, ", not ",
                    i + 1, " of ", head.count, "; the parts do not belong together");
      }
      for (TensorInfo& tensor : next.tensors_) out->tensors_.push_back(std::move(tensor));
      out->files_.push_back(std::move(next.files_[0]));
    }
    if (head.tensors && *head.tensors != static_cast<int64_t>(out->tensors_.size())) {
      base::Throw(ErrorCode::kBadFile, name, ": split.tensors.count is ", *head.tensors, ", the ", head.count,
                  " parts hold ", out->tensors_.size(), "; download them again");
    }
  }
  CheckNames(out->tensors_, name);
  return out;
}

namespace {

ConfigValue ToConfigValue(const MetaValue& value, const std::byte* p) {
  ConfigValue out;
  if (value.type == MetaType::kBool) {
    out.kind = ConfigValue::Kind::kBool;
    out.boolean = Load<uint8_t>(p) != 0;
  } else if (const auto integer = IntAt(value.type, p)) {
    out.kind = ConfigValue::Kind::kInt;
    out.integer = *integer;
    out.number = static_cast<double>(*integer);
  } else if (const auto number = DoubleAt(value.type, p)) {
    out.kind = ConfigValue::Kind::kDouble;
    out.number = *number;
  }
  return out;
}

ConfigValue ToConfigText(std::string_view text) {
  ConfigValue out;
  out.kind = ConfigValue::Kind::kString;
  out.text = text;
  return out;
}

}  // namespace

Config GgufFile::ToConfig() const {
  ConfigValue root;
  root.kind = ConfigValue::Kind::kObject;
  int64_t values = 0;
  for (const MetaValue& value : metadata_) {
    if (value.is_array && value.key.starts_with("tokenizer.")) continue;
    values += static_cast<int64_t>(std::min<uint64_t>(value.count, base::kMaxConfigValues + 1));
    if (values > base::kMaxConfigValues) {
      base::Throw(ErrorCode::kBadFile, PrintablePath(path_), ": key '", Printable(value.key),
                  "' brings the metadata to more than ", base::kMaxConfigValues,
                  " values outside the tokenizer; the file is damaged");
    }
    ConfigValue item;
    if (!value.is_array) {
      item =
          value.type == MetaType::kString ? ToConfigText(*value.AsString()) : ToConfigValue(value, value.bytes.data());
    } else {
      item.kind = ConfigValue::Kind::kList;
      if (const auto strings = value.AsStrings()) {
        for (const std::string_view text : *strings) item.items.push_back(ToConfigText(text));
      } else {
        const size_t size = ScalarBytes(static_cast<uint32_t>(value.type));
        for (uint64_t i = 0; i < value.count; ++i)
          item.items.push_back(ToConfigValue(value, value.bytes.data() + i * size));
      }
    }
    root.keys.emplace_back(value.key);
    root.items.push_back(std::move(item));
  }
  return Config(std::move(root), PrintablePath(path_));
}

}  // namespace vllm
