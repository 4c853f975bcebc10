// From what a user types as the model to a file or folder.
#include "load/model_path.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/strings.h"
#include "load/gguf_split.h"
#include "load/text.h"

namespace vllm {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::StrCat;

namespace {

struct HubName {
  std::string repository;  // "org/name"
  std::string choice;      // after the colon: a quantization or a file; may be empty
};

bool IsNamePart(std::string_view part) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  // The hub's own rules: no leading or trailing '-' or '.', no "--" and "..", which name cache folders.
  return !part.empty() && part.size() <= 96 && std::ranges::all_of(part, plain) && part.find("..") == part.npos &&
         part.find("--") == part.npos && part.front() != '.' && part.front() != '-' && part.back() != '.' &&
         part.back() != '-';
}

std::optional<HubName> ParseHubName(std::string_view typed) {
  const size_t colon = typed.find(':');
  HubName out;
  if (colon != typed.npos) {
    out.choice = typed.substr(colon + 1);
    if (out.choice.empty() || out.choice.find('\0') != std::string::npos) return std::nullopt;
    for (const std::string_view part : base::Split(out.choice, '/')) {
      if (part.empty() || part == "." || part == "..") return std::nullopt;
    }
  }
  const std::string_view repository = typed.substr(0, colon);
  const auto parts = base::Split(repository, '/');
  if (parts.size() != 2 || !IsNamePart(parts[0]) || !IsNamePart(parts[1])) return std::nullopt;
  out.repository = repository;
  return out;
}

// The command that fetches the model; the quantization becomes a pattern.
std::string DownloadCommand(const HubName& name) {
  if (name.choice.empty()) return StrCat("hf download ", name.repository);
  if (name.choice.ends_with(".gguf")) return StrCat("hf download ", name.repository, " '", Printable(name.choice), "'");
  return StrCat("hf download ", name.repository, " --include '*", Printable(name.choice), "*.gguf'");
}

// The commit in refs/main; nullopt when there is none or it is no plain name.
std::optional<std::string> MainCommit(const std::string& repository_folder) {
  const std::string path = repository_folder + "/refs/main";
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  char buffer[129] = {};
  file.read(buffer, 128);
  std::string commit(buffer, static_cast<size_t>(file.gcount()));
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == '\r' || commit.back() == ' ')) commit.pop_back();
  const auto plain = [](char c) { return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9'); };
  if (commit.empty() || !std::ranges::all_of(commit, plain)) return std::nullopt;
  return commit;
}

// Paths below the folder, relative to it, of .gguf models (first parts only), sorted. Two levels deep: repositories
// keep quantizations in subfolders.
std::vector<std::string> GgufBelow(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    if (it.depth() >= 2) it.disable_recursion_pending();
    const std::string name = it->path().lexically_relative(folder).string();
    const auto part = ParseGgufPartName(name);
    std::error_code ignored;
    if (name.ends_with(".gguf") && (!part || part->index == 0) && it->is_regular_file(ignored)) out.push_back(name);
  }
  std::ranges::sort(out);
  return out;
}

// Whether the file name has the quantization as a whole word: "x-Q4_K_M.gguf" has Q4_K_M but not Q4_K.
bool HasQuantization(std::string_view file, std::string_view quantization) {
  const std::string name = base::ToLower(file.substr(file.rfind('/') == file.npos ? 0 : file.rfind('/') + 1));
  const std::string wanted = base::ToLower(quantization);
  const auto bounds = [](char c) { return c == '-' || c == '.'; };
  for (size_t at = name.find(wanted); at != std::string::npos; at = name.find(wanted, at + 1)) {
    const size_t after = at + wanted.size();
    if ((at == 0 || bounds(name[at - 1])) && (after == name.size() || bounds(name[after]))) return true;
  }
  return false;
}

std::string List(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < 12; ++i) out += StrCat(i == 0 ? "" : ", ", Printable(names[i]));
  return names.size() > 12 ? out + ", …" : out;
}

std::string Choose(const HubName& name, const std::string& snapshot) {
  std::error_code error;
  const std::vector<std::string> models = GgufBelow(snapshot);
  if (name.choice.empty()) {
    if (fs::exists(snapshot + "/config.json", error) || models.empty()) return snapshot;
    if (models.size() == 1) return snapshot + "/" + models[0];
    base::Throw(ErrorCode::kInvalidArgument, "model '", name.repository, "' has ", models.size(),
                " GGUF files in the hub cache; "
                "add one as ",
                name.repository, ":FILE (", List(models), ")");
  }
  if (name.choice.ends_with(".gguf")) {
    const std::string path = snapshot + "/" + name.choice;
    if (fs::is_regular_file(path, error)) return path;
  }
  std::vector<std::string> found;
  for (const std::string& model : models) {
    if (HasQuantization(model, name.choice)) found.push_back(model);
  }
  if (found.size() == 1) return snapshot + "/" + found[0];
  if (found.size() > 1) {
    base::Throw(ErrorCode::kInvalidArgument, "model '", name.repository, ":", Printable(name.choice), "' fits ",
                found.size(), " files in the hub cache; give one as ", name.repository, ":FILE (", List(found), ")");
  }
  base::Throw(ErrorCode::kNotFound, "model '", name.repository, ":", Printable(name.choice),
              "' is not in the hub cache ", PrintablePath(snapshot),
              models.empty() ? std::string() : StrCat(", which has ", List(models)),
              "; to download it, type: ", DownloadCommand(name));
}

}  // namespace

std::string HubCacheFolder(const HubLocations& locations) {
  if (!locations.hf_hub_cache.empty()) return locations.hf_hub_cache;
  if (!locations.hf_home.empty()) return locations.hf_home + "/hub";
  if (!locations.xdg_cache_home.empty()) return locations.xdg_cache_home + "/huggingface/hub";
  if (!locations.home.empty()) return locations.home + "/.cache/huggingface/hub";
  return {};
}

ModelPath ResolveModelPath(std::string_view typed, const HubLocations& locations) {
  const std::string text(typed);
  std::error_code error;
  if (!text.empty() && text.find('\0') == std::string::npos && fs::exists(text, error))
    return {.path = text, .name = text};
  const auto name = ParseHubName(typed);
  if (!name) {
    base::Throw(
        ErrorCode::kNotFound, "model '", PrintablePath(text),
        "' does not exist, and is no hub name either; give a folder, a .gguf file or a name like org/name:Q4_K_M");
  }
  const std::string cache = HubCacheFolder(locations);
  std::string folder_name = "models--" + name->repository;
  folder_name.replace(folder_name.find('/'), 1, "--");
  const std::string folder = cache + "/" + folder_name;
  const auto commit = cache.empty() ? std::nullopt : MainCommit(folder);
  const std::string snapshot = commit ? folder + "/snapshots/" + *commit : std::string();
  if (!commit || !fs::is_directory(snapshot, error)) {
    base::Throw(ErrorCode::kNotFound, "model '", Printable(text), "' is neither a path nor in the hub cache ",
                cache.empty() ? std::string("(HF_HOME and HOME are not set)") : PrintablePath(cache),
                "; to download it, type: ", DownloadCommand(*name));
  }
  return {.path = Choose(*name, snapshot), .name = text};
}

}  // namespace vllm
