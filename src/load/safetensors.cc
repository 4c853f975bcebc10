// Safetensors: checks of header and data range, the index of sharded checkpoints, and what a folder may hold.
//
//   header length u64 | header (JSON) | data
#include "load/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/limits.h"
#include "base/result.h"
#include "base/strings.h"
#include "load/json.h"
#include "load/text.h"
#include "quant/format.h"

namespace vllm {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::StrCat;
using vt::FormatId;

namespace {

struct Dtype {
  std::string_view name;
  int bits;
  FormatId format = FormatId::kNone;
};

// All that the safetensors library 0.8 reads.
constexpr std::array kDtypes = {
    Dtype{"F32", 32, FormatId::kF32},
    Dtype{"F16", 16, FormatId::kF16},
    Dtype{"BF16", 16, FormatId::kBF16},
    Dtype{"F64", 64, FormatId::kF64},
    Dtype{"I8", 8, FormatId::kI8},
    Dtype{"I16", 16, FormatId::kI16},
    Dtype{"I32", 32, FormatId::kI32},
    Dtype{"I64", 64, FormatId::kI64},
    Dtype{"BOOL", 8},
    Dtype{"U8", 8},
    Dtype{"U16", 16},
    Dtype{"U32", 32},
    Dtype{"U64", 64},
    Dtype{"C64", 64},
    Dtype{"F8_E4M3", 8},
    Dtype{"F8_E5M2", 8},
    Dtype{"F8_E8M0", 8},
    Dtype{"F8_E4M3FNUZ", 8},
    Dtype{"F8_E5M2FNUZ", 8},
    Dtype{"F6_E2M3", 6},
    Dtype{"F6_E3M2", 6},
    Dtype{"F4", 4},
};

const Dtype* FindDtype(std::string_view name) {
  const auto at = std::ranges::find(kDtypes, name, &Dtype::name);
  return at == kDtypes.end() ? nullptr : &*at;
}

// The tensor's bytes by shape and dtype. `head` starts the message.
uint64_t SizeOf(const TensorEntry& entry, const Dtype& dtype, const std::string& head) {
  uint64_t elements = 1, bits = 0;
  bool fits = true;
  for (const uint64_t extent : entry.shape) {
    fits = fits && extent <= INT64_MAX && !__builtin_mul_overflow(elements, extent, &elements);
  }
  if (!fits || __builtin_mul_overflow(elements, static_cast<uint64_t>(dtype.bits), &bits)) {
    base::Throw(ErrorCode::kBadFile, head, "shape multiplies to more than 2^64 bits; the file is damaged");
  }
  if (bits % 8 != 0) base::Throw(ErrorCode::kBadFile, head, "shape does not fill whole bytes; the file is damaged");
  return bits / 8;
}

}  // namespace

std::vector<TensorInfo> ReadSafetensorsHeader(std::span<const std::byte> bytes, const std::string& name) {
  const auto fail = [&](const auto&... parts) { base::Throw(ErrorCode::kBadFile, name, ": ", parts...); };
  if (bytes.size() < 8)
    fail("is truncated: ", bytes.size(), " bytes, the header length alone takes 8; download it again");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  if (length > base::kMaxSafetensorsHeaderBytes) {
    fail("header length ", length, " is above the limit of ", base::kMaxSafetensorsHeaderBytes,
         " bytes; it is damaged or no safetensors file");
  }
  if (length > bytes.size() - 8) {
    fail("is truncated: the header takes ", length, " bytes, the file has ", bytes.size(), "; download it again");
  }
  auto parsed = ParseTensorEntries({reinterpret_cast<const char*>(bytes.data()) + 8, length});
  if (!parsed) fail("header: ", parsed.error().message, "; the file is damaged");
  std::vector<TensorEntry>& entries = *parsed;
  std::ranges::sort(entries, {}, [](const TensorEntry& e) { return std::pair(e.begin, e.end); });

  const auto data = bytes.subspan(8 + length);
  std::vector<TensorInfo> out;
  out.reserve(entries.size());
  std::unordered_set<std::string_view> seen;
  uint64_t at = 0;
  for (TensorEntry& entry : entries) {
    const std::string head = StrCat(name, ": tensor '", Printable(entry.name), "': ");
    if (!seen.insert(entry.name).second) base::Throw(ErrorCode::kBadFile, head, "is given twice; the file is damaged");
    const Dtype* dtype = FindDtype(entry.dtype);
    if (dtype == nullptr) {
      base::Throw(ErrorCode::kUnsupported, head, "dtype '", Printable(entry.dtype, 40),
                  "' is unknown; the file is damaged");
    }
    const uint64_t size = SizeOf(entry, *dtype, head);
    if (entry.begin != at || entry.end < entry.begin) {
      base::Throw(ErrorCode::kBadFile, head, "data_offsets [", entry.begin, ", ", entry.end,
                  "] do not follow the tensor before, which ends at ", at, "; the file is damaged");
    }
    if (entry.end - entry.begin != size) {
      base::Throw(ErrorCode::kBadFile, head, "data_offsets span ", entry.end - entry.begin, " bytes, shape and dtype ",
                  entry.dtype, " need ", size, "; the file is damaged");
    }
    if (entry.end > data.size()) {
      base::Throw(ErrorCode::kBadFile, head, "is truncated: it ends at byte ", entry.end, " of the data, which has ",
                  data.size(), "; download it again");
    }
    at = entry.end;
    TensorInfo info{
        .format = dtype->format, .data = data.subspan(entry.begin, size), .file_index = 0, .dtype = entry.dtype};
    info.shape.assign(entry.shape.begin(), entry.shape.end());
    info.name = entry.name;  // a copy: `seen` views the entry's
    out.push_back(std::move(info));
  }
  if (at != data.size()) fail("has ", data.size() - at, " bytes of data that no tensor covers; the file is damaged");
  return out;
}

namespace {

// Nothing but a way into the folder: components that are names, and the right extension.
bool StaysInside(std::string_view shard) {
  if (shard.empty() || shard.find('\0') != std::string_view::npos || !shard.ends_with(".safetensors")) return false;
  for (const std::string_view part : base::Split(shard, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

// The folder of a repository in a hub cache when `folder` is one of its snapshots:
// …/models--org--name/snapshots/commit.
fs::path BlobsOf(const fs::path& folder) {
  const fs::path snapshots = folder.parent_path(), repository = snapshots.parent_path();
  if (snapshots.filename() != "snapshots" || !repository.filename().string().starts_with("models--")) return {};
  return repository / "blobs";
}

bool IsBelow(const fs::path& path, const fs::path& folder) {
  const auto [at, rest] = std::ranges::mismatch(folder, path);
  return at == folder.end();
}

// Opens a weight file of the folder; `entry` names it in messages. Where symbolic links lead is decided before anything
// is opened.
std::shared_ptr<const base::MappedFile> OpenInside(const std::string& folder, const std::string& shard) {
  const std::string path = folder + "/" + shard, shown = PrintablePath(path);
  std::error_code error;
  const fs::path real_folder = fs::canonical(folder, error);
  const fs::path real = error ? fs::path() : fs::canonical(path, error);
  if (error) base::Throw(ErrorCode::kNotFound, shown, ": does not exist; download the model again");
  const fs::path blobs = BlobsOf(real_folder);
  if (!IsBelow(real, real_folder) && (blobs.empty() || !IsBelow(real, fs::weakly_canonical(blobs, error)))) {
    base::Throw(ErrorCode::kBadFile, shown, ": is a link to ", PrintablePath(real.string()),
                ", outside the model folder; copy the file into the folder");
  }
  if (!fs::is_regular_file(real, error)) base::Throw(ErrorCode::kBadFile, shown, ": is not a regular file");
  return base::MappedFile::Open(path);
}

std::vector<std::string> FileNames(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    out.push_back(it->path().filename().string());
  }
  if (error) base::Throw(ErrorCode::kNotFound, PrintablePath(folder), ": cannot be listed: ", error.message());
  std::ranges::sort(out);
  return out;
}

[[noreturn]] void RefuseWithoutWeights(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool pickle =
        name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth") || name.ends_with(".ckpt");
    if (pickle) {
      base::Throw(ErrorCode::kUnsupported, PrintablePath(folder + "/" + name),
                  ": is a pickle, which can run code when it is read, and is not supported; convert it to safetensors "
                  "(transformers: save_pretrained) or use a GGUF file");
    }
  }
  base::Throw(
      ErrorCode::kNotFound, PrintablePath(folder),
      ": holds no weights (looked for model.safetensors and model.safetensors.index.json); download the model again");
}

// The folder's weight files, without an index.
std::string SingleFile(const std::string& folder) {
  const std::vector<std::string> names = FileNames(folder);
  if (std::ranges::binary_search(names, "model.safetensors")) return "model.safetensors";
  std::vector<std::string> found;
  std::ranges::copy_if(names, std::back_inserter(found),
                       [](const auto& name) { return name.ends_with(".safetensors"); });
  if (found.empty()) RefuseWithoutWeights(folder, names);
  if (found.size() > 1) {
    base::Throw(
        ErrorCode::kBadFile, PrintablePath(folder), ": holds ", found.size(),
        " safetensors files but no model.safetensors.index.json that says what they are; download the model again");
  }
  return found[0];
}

class FolderReader {
 public:
  explicit FolderReader(const std::string& folder) : folder_(folder) {}

  SafetensorsFolder Read() {
    const std::string index_path = folder_ + "/model.safetensors.index.json";
    std::error_code error;
    if (!fs::exists(index_path, error)) {
      AddFile(SingleFile(folder_));
      return std::move(out_);
    }
    if (!fs::is_regular_file(index_path, error)) {
      base::Throw(ErrorCode::kBadFile, PrintablePath(index_path), ": is not a regular file");
    }
    const auto file = base::MappedFile::Open(index_path);
    const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    const std::string shown = PrintablePath(index_path);
    const SafetensorsIndex index = ReadSafetensorsIndex(text, shown);
    std::vector<std::string> shards = index.shards;
    std::ranges::sort(shards);
    shards.erase(std::ranges::unique(shards).begin(), shards.end());
    for (const std::string& shard : shards) AddFile(shard);
    for (size_t i = 0; i < index.tensors.size(); ++i) {
      const auto at = shard_of_.find(index.tensors[i]);
      if (at == shard_of_.end() || at->second != index.shards[i]) {
        base::Throw(ErrorCode::kBadFile, shown, ": weight_map says tensor '", Printable(index.tensors[i]), "' is in '",
                    Printable(index.shards[i]), "', which does not hold it; download the model again");
      }
    }
    return std::move(out_);
  }

 private:
  void AddFile(const std::string& shard) {
    auto file = OpenInside(folder_, shard);
    const std::string shown = PrintablePath(folder_ + "/" + shard);
    std::vector<TensorInfo> tensors = ReadSafetensorsHeader(file->bytes(), shown);
    if (out_.tensors.size() + tensors.size() > base::kMaxModelTensors) {
      base::Throw(ErrorCode::kBadFile, shown, ": brings the model to more than ", base::kMaxModelTensors, " tensors");
    }
    for (TensorInfo& tensor : tensors) {
      const auto [at, fresh] = shard_of_.try_emplace(tensor.name, shard);
      if (!fresh) {
        base::Throw(ErrorCode::kBadFile, shown, ": tensor '", Printable(tensor.name), "' is in ", Printable(at->second),
                    " too; download the model again");
      }
      tensor.file_index = static_cast<int>(out_.files.size());
      Align(tensor);
      out_.tensors.push_back(std::move(tensor));
    }
    out_.files.push_back(std::move(file));
  }

  // A header whose length is no multiple of 8 puts the data at odd addresses, where kernels must not read numbers.
  void Align(TensorInfo& tensor) {
    const Dtype* dtype = FindDtype(tensor.dtype);
    const auto size = static_cast<uintptr_t>(std::max(1, dtype->bits / 8));
    if (reinterpret_cast<uintptr_t>(tensor.data.data()) % size == 0) return;
    auto copy = std::make_shared<const std::vector<std::byte>>(tensor.data.begin(), tensor.data.end());
    tensor.data = *copy;
    tensor.file_index = -1;
    out_.copies.push_back(std::move(copy));
  }

  const std::string& folder_;
  SafetensorsFolder out_;
  std::unordered_map<std::string, std::string> shard_of_;
};

}  // namespace

SafetensorsIndex ReadSafetensorsIndex(std::string_view json, const std::string& name) {
  auto parsed = ParseWeightMap(json);
  if (!parsed) base::Throw(ErrorCode::kBadFile, name, ": ", parsed.error().message, "; download it again");
  SafetensorsIndex out = std::move(parsed).value();
  if (out.tensors.empty()) base::Throw(ErrorCode::kBadFile, name, ": weight_map is empty; download it again");
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < out.tensors.size(); ++i) {
    const std::string head = StrCat(name, ": weight_map entry '", Printable(out.tensors[i]), "'");
    if (!seen.insert(out.tensors[i]).second) base::Throw(ErrorCode::kBadFile, head, " is given twice");
    if (!StaysInside(out.shards[i])) {
      base::Throw(ErrorCode::kBadFile, head, " names '", Printable(out.shards[i]),
                  "', which is no .safetensors file inside the model folder; download the model from a trusted source");
    }
  }
  return out;
}

SafetensorsFolder OpenSafetensorsFolder(const std::string& folder) { return FolderReader(folder).Read(); }

}  // namespace vllm
