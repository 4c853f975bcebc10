// Opens a model: decides what a path holds, reads configuration, maps weights.
#include "load/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/result.h"
#include "base/strings.h"
#include "load/gguf_split.h"
#include "load/safetensors.h"
#include "load/text.h"
#include "quant/format.h"

namespace vllm {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::StrCat;

const TensorInfo* Checkpoint::Find(std::string_view name) const {
  const auto at = by_name.find(name);
  return at == by_name.end() ? nullptr : &tensors[at->second];
}

uint64_t Checkpoint::tensor_bytes() const {
  uint64_t sum = 0;
  for (const TensorInfo& tensor : tensors) sum += tensor.data.size();
  return sum;
}

void Checkpoint::RequireServed(const TensorInfo& tensor) const {
  using enum vt::FormatId;
  const bool served = dialect == Dialect::kGguf
                          ? tensor.format != kNone
                          : tensor.format == kF32 || tensor.format == kF16 || tensor.format == kBF16;
  if (served) return;
  const bool mapped = tensor.file_index >= 0 && static_cast<size_t>(tensor.file_index) < files.size();
  const std::string& file = mapped ? files[static_cast<size_t>(tensor.file_index)]->path() : path;
  base::Throw(ErrorCode::kUnsupported, PrintablePath(file), ": tensor '", Printable(tensor.name), "' has dtype ",
              tensor.dtype,
              ", which is not supported for weights (supported: F32, F16, BF16); convert the model to BF16");
}

namespace {

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

void IndexNames(Checkpoint& checkpoint) {
  checkpoint.by_name.reserve(checkpoint.tensors.size());
  for (uint32_t i = 0; i < checkpoint.tensors.size(); ++i) checkpoint.by_name.emplace(checkpoint.tensors[i].name, i);
}

Checkpoint LoadGguf(const std::string& path) {
  Checkpoint out;
  out.dialect = Checkpoint::Dialect::kGguf;
  out.path = path;
  out.gguf = GgufFile::Open(path);
  out.config = out.gguf->ToConfig();
  out.tensors.assign(out.gguf->tensors().begin(), out.gguf->tensors().end());
  out.files.assign(out.gguf->files().begin(), out.gguf->files().end());
  IndexNames(out);
  return out;
}

// Schemes that change what the stored tensors mean are refused before any weight is opened.
void RefuseQuantized(const Config& config) {
  for (const std::string_view key : {"quantization_config", "compression_config"}) {
    if (!config.has(key)) continue;
    const Config scheme = config.object(key);
    const std::string method = scheme.get<std::string>("quant_method", "(unnamed)");
    base::Throw(ErrorCode::kUnsupported, config.source(), ": ", key, ".quant_method '", Printable(method, 40),
                "' is not supported yet; use the unquantized model or a GGUF file of it");
  }
}

Checkpoint LoadHf(const std::string& folder) {
  Checkpoint out;
  out.dialect = Checkpoint::Dialect::kHf;
  out.path = folder;
  out.config = Config::FromFile(folder + "/config.json");
  RefuseQuantized(out.config);
  const std::string generation = folder + "/generation_config.json";
  if (Exists(generation)) out.generation_config = Config::FromFile(generation);
  SafetensorsFolder weights = OpenSafetensorsFolder(folder);
  out.tensors = std::move(weights.tensors);
  out.files = std::move(weights.files);
  out.copies = std::move(weights.copies);
  IndexNames(out);
  return out;
}

// Models among the folder's .gguf files: of a split one only the first part counts.
std::vector<std::string> GgufModels(const std::string& folder, bool& has_safetensors) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    has_safetensors = has_safetensors || name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
    const auto part = ParseGgufPartName(name);
    if (name.ends_with(".gguf") && (!part || part->index == 0)) out.push_back(name);
  }
  if (error) base::Throw(ErrorCode::kNotFound, PrintablePath(folder), ": cannot be listed: ", error.message());
  std::ranges::sort(out);
  return out;
}

Checkpoint LoadFolder(const std::string& folder) {
  const std::string shown = PrintablePath(folder);
  if (Exists(folder + "/adapter_config.json")) {
    base::Throw(ErrorCode::kUnsupported, shown,
                ": is an adapter (adapter_config.json), not a model, and adapters are not supported yet; merge it into "
                "its base "
                "model (peft: merge_and_unload) and give that folder");
  }
  bool has_safetensors = false;
  const std::vector<std::string> models = GgufModels(folder, has_safetensors);
  const bool has_config = Exists(folder + "/config.json");
  if (has_config && (has_safetensors || models.empty())) return LoadHf(folder);
  if (models.size() == 1) return LoadGguf(folder + "/" + models[0]);
  if (models.empty()) {
    base::Throw(ErrorCode::kNotFound, shown,
                ": holds neither config.json nor a .gguf file; give the folder of a model");
  }
  std::string list;
  for (size_t i = 0; i < models.size() && i < 8; ++i) list += StrCat(i == 0 ? "" : ", ", Printable(models[i]));
  if (models.size() > 8) list += ", …";
  base::Throw(ErrorCode::kInvalidArgument, shown, ": holds ", models.size(),
              " GGUF models; give the path of one: ", list);
}

bool StartsAsGguf(const std::string& path) {
  const auto file = base::MappedFile::Open(path);
  const auto bytes = file->bytes();
  return bytes.size() >= 4 && std::string_view(reinterpret_cast<const char*>(bytes.data()), 4) == "GGUF";
}

Checkpoint LoadFile(const std::string& path) {
  if (path.ends_with(".gguf")) return LoadGguf(path);
  const std::string shown = PrintablePath(path);
  if (path.ends_with(".safetensors") || path.ends_with(".json")) {
    base::Throw(ErrorCode::kInvalidArgument, "model path is not a directory: ", shown,
                " is one file of a model; give the folder that holds it");
  }
  const auto ends = [&](std::string_view tail) { return path.ends_with(tail); };
  if (ends(".bin") || ends(".pt") || ends(".pth") || ends(".ckpt")) {
    base::Throw(ErrorCode::kUnsupported, shown,
                ": is a pickle, which can run code when it is read, and is not supported; convert it to safetensors "
                "(transformers: save_pretrained) or use a GGUF file");
  }
  if (StartsAsGguf(path)) return LoadGguf(path);
  base::Throw(ErrorCode::kInvalidArgument, "model path is not a directory: ", shown,
              " is not a GGUF file either; give the folder of a model or a .gguf file");
}

}  // namespace

Checkpoint LoadCheckpoint(const std::string& path) {
  const std::string shown = PrintablePath(path);
  if (path.empty() || path.find('\0') != std::string::npos) {
    base::Throw(ErrorCode::kInvalidArgument, "model path is not a directory: '", shown,
                "'; give a folder or a .gguf file");
  }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return LoadFolder(path);
  if (fs::is_regular_file(status)) return LoadFile(path);
  if (!fs::exists(status)) {
    base::Throw(ErrorCode::kNotFound, "model path is not a directory: ", shown, " does not exist",
                error && error.value() != ENOENT ? StrCat(" (", error.message(), ")") : std::string(),
                "; give a folder, a .gguf file or a hub name");
  }
  base::Throw(ErrorCode::kInvalidArgument, "model path is not a directory: ", shown,
              " is neither a folder nor a file; give a folder or a .gguf file");
}

}  // namespace vllm
