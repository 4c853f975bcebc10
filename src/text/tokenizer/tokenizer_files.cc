// Finds and reads the files of a tokenizer.
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/mapped_file.h"
#include "base/result.h"
#include "base/strings.h"
#include "text/tokenizer/loaders.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/unicode.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  explicit Folder(const std::string& path) : path_(path) {}

  bool Has(const char* name) const {
    std::error_code error;
    return fs::is_regular_file(path_ / name, error);
  }
  std::string NameOf(const char* name) const { return tokenizer::ShownPath((path_ / name).string()); }
  // The mapping lives as long as the folder object.
  std::string_view Read(const char* name) { return Read((path_ / name).string()); }
  std::string_view Read(const std::string& path) {
    files_.push_back(base::MappedFile::Open(path));
    const auto bytes = files_.back()->bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // NAME.jinja of additional_chat_templates, sorted.
  std::vector<fs::path> Templates() const {
    std::vector<fs::path> out;
    std::error_code error;
    for (fs::directory_iterator it(path_ / "additional_chat_templates", error), end; !error && it != end;
         it.increment(error)) {
      if (it->path().extension() == ".jinja") out.push_back(it->path());
    }
    return out;
  }

 private:
  fs::path path_;
  std::vector<std::shared_ptr<const base::MappedFile>> files_;
};

std::string ValidTemplate(std::string_view text, const std::string& file) {
  if (!base::IsValidUtf8(text)) base::Throw(base::ErrorCode::kBadFile, file, ": the template is not valid UTF-8");
  return std::string(text);
}

tokenizer::Config ReadConfigs(Folder& folder) {
  tokenizer::Config config;
  if (folder.Has("tokenizer_config.json")) {
    tokenizer::ReadConfig(folder.Read("tokenizer_config.json"), folder.NameOf("tokenizer_config.json"), config);
  }
  if (folder.Has("special_tokens_map.json")) {
    tokenizer::ReadSpecialTokensMap(folder.Read("special_tokens_map.json"), folder.NameOf("special_tokens_map.json"),
                                    config);
  }
  if (folder.Has("chat_template.json")) {
    tokenizer::ReadChatTemplateJson(folder.Read("chat_template.json"), folder.NameOf("chat_template.json"), config);
  }
  if (folder.Has("chat_template.jinja")) {
    config.chat_templates["default"] =
        ValidTemplate(folder.Read("chat_template.jinja"), folder.NameOf("chat_template.jinja"));
  }
  for (const fs::path& path : folder.Templates()) {
    config.chat_templates[path.stem().string()] =
        ValidTemplate(folder.Read(path.string()), tokenizer::ShownPath(path.string()));
  }
  return config;
}

tokenizer::Config ConfigOf(std::string_view text) {
  tokenizer::Config config;
  if (!text.empty()) tokenizer::ReadConfig(text, "tokenizer_config.json", config);
  return config;
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::FromDirectory(const std::string& path) {
  Folder folder(path);
  if (folder.Has("tokenizer.json")) {
    const tokenizer::Config config = ReadConfigs(folder);
    return std::make_unique<Tokenizer>(
        tokenizer::ReadTokenizerJson(folder.Read("tokenizer.json"), folder.NameOf("tokenizer.json"), config));
  }
  if (folder.Has("tokenizer.model")) {
    const tokenizer::Config config = ReadConfigs(folder);
    return std::make_unique<Tokenizer>(
        tokenizer::ReadSentencePiece(folder.Read("tokenizer.model"), folder.NameOf("tokenizer.model"), config));
  }
  base::Throw(
      base::ErrorCode::kNotFound, tokenizer::ShownPath(path), ": neither tokenizer.json nor tokenizer.model is there",
      folder.Has("vocab.json") ? " (vocab.json alone is not enough: save the tokenizer as tokenizer.json)" : "");
}

std::unique_ptr<Tokenizer> Tokenizer::FromTokenizerJson(std::string_view json, std::string_view config) {
  return std::make_unique<Tokenizer>(tokenizer::ReadTokenizerJson(json, "tokenizer.json", ConfigOf(config)));
}

std::unique_ptr<Tokenizer> Tokenizer::FromSentencePiece(std::string_view proto, std::string_view config) {
  return std::make_unique<Tokenizer>(tokenizer::ReadSentencePiece(proto, "tokenizer.model", ConfigOf(config)));
}

std::unique_ptr<Tokenizer> Tokenizer::FromGguf(const GgufVocab& vocab) {
  return std::make_unique<Tokenizer>(tokenizer::ReadGguf(vocab));
}

}  // namespace vllm
