// The tokenizer and chat template of a model, wherever its files keep them.
#include "engine/load_text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/limits.h"
#include "base/result.h"

namespace vllm {
namespace {

template <class T, class F>
void Read(const Checkpoint& checkpoint, const char* key, T& out, F convert) {
  const MetaValue* value = checkpoint.Meta(key);
  if (!value) return;
  auto converted = convert(*value);
  if (!converted)
    base::Throw(base::ErrorCode::kBadFile, checkpoint.path, ": ", key, " has the wrong type; convert the model again");
  out = T(std::move(*converted));
}

GgufVocab VocabOf(const Checkpoint& checkpoint) {
  GgufVocab vocab;
  const auto text = [](const MetaValue& value) { return value.AsString(); };
  const auto number = [](const MetaValue& value) { return value.AsInt(); };
  const auto flag = [](const MetaValue& value) { return value.AsBool(); };
  const auto strings = [](const MetaValue& value) -> std::optional<std::vector<std::string>> {
    const auto views = value.AsStrings();
    if (!views) return std::nullopt;
    return std::vector<std::string>(views->begin(), views->end());
  };
  const auto types = [](const MetaValue& value) -> std::optional<std::vector<int32_t>> {
    const auto wide = value.AsInts();
    if (!wide) return std::nullopt;
    return std::vector<int32_t>(wide->begin(), wide->end());
  };
  Read(checkpoint, "general.architecture", vocab.architecture, text);
  Read(checkpoint, "tokenizer.ggml.model", vocab.model, text);
  Read(checkpoint, "tokenizer.ggml.pre", vocab.pre, text);
  Read(checkpoint, "tokenizer.ggml.tokens", vocab.tokens, strings);
  Read(checkpoint, "tokenizer.ggml.scores", vocab.scores, [](const MetaValue& value) { return value.AsFloats(); });
  Read(checkpoint, "tokenizer.ggml.token_type", vocab.types, types);
  Read(checkpoint, "tokenizer.ggml.merges", vocab.merges, strings);
  Read(checkpoint, "tokenizer.ggml.bos_token_id", vocab.bos, number);
  Read(checkpoint, "tokenizer.ggml.eos_token_id", vocab.eos, number);
  Read(checkpoint, "tokenizer.ggml.unknown_token_id", vocab.unk, number);
  Read(checkpoint, "tokenizer.ggml.padding_token_id", vocab.pad, number);
  Read(checkpoint, "tokenizer.ggml.seperator_token_id", vocab.sep, number);
  Read(checkpoint, "tokenizer.ggml.mask_token_id", vocab.mask, number);
  Read(checkpoint, "tokenizer.ggml.eot_token_id", vocab.eot, number);
  Read(checkpoint, "tokenizer.ggml.add_bos_token", vocab.add_bos, flag);
  Read(checkpoint, "tokenizer.ggml.add_eos_token", vocab.add_eos, flag);
  Read(checkpoint, "tokenizer.ggml.add_space_prefix", vocab.add_space_prefix, flag);
  Read(checkpoint, "tokenizer.ggml.remove_extra_whitespaces", vocab.remove_extra_whitespaces, flag);
  Read(checkpoint, "tokenizer.chat_template", vocab.chat_template, text);
  if (const MetaValue* charsmap = checkpoint.Meta("tokenizer.ggml.precompiled_charsmap"))
    vocab.precompiled_charsmap.assign(reinterpret_cast<const char*>(charsmap->bytes.data()), charsmap->bytes.size());
  constexpr std::string_view kNamed = "tokenizer.chat_template.";
  for (const MetaValue& value : checkpoint.gguf->metadata())
    if (value.key.starts_with(kNamed))
      if (const auto named = value.AsString())
        vocab.named_chat_templates[std::string(value.key.substr(kNamed.size()))] = std::string(*named);
  return vocab;
}

std::unique_ptr<Tokenizer> TokenizerOf(const Checkpoint& checkpoint) {
  if (checkpoint.dialect == Checkpoint::Dialect::kGguf) return Tokenizer::FromGguf(VocabOf(checkpoint));
  return Tokenizer::FromDirectory(checkpoint.path);
}

}  // namespace

std::unique_ptr<Tokenizer> LoadTokenizer(const Checkpoint& checkpoint, const std::string& override) {
  if (override.empty()) return TokenizerOf(checkpoint);
  if (override.ends_with(".gguf")) return TokenizerOf(LoadCheckpoint(override));
  return Tokenizer::FromDirectory(override);
}

std::unique_ptr<ChatTemplate> LoadChatTemplate(const Tokenizer& tokenizer, const std::string& override) {
  std::vector<NamedTemplate> templates;
  for (const auto& [name, source] : tokenizer.chat_templates()) templates.push_back({name, source});
  if (!override.empty()) {
    std::string source = override;
    std::error_code error;
    if (std::filesystem::is_regular_file(override, error)) {
      if (std::filesystem::file_size(override, error) > base::kMaxTemplateBytes)
        base::Throw(base::ErrorCode::kBadFile, override, ": a chat template of more than ", base::kMaxTemplateBytes,
                    " bytes");
      std::ifstream in(override, std::ios::binary);
      std::ostringstream text;
      text << in.rdbuf();
      source = text.str();
    } else if (override.find_first_of("{}\n") == std::string::npos) {
      // vLLM's rule: what names no file must look like a template.
      base::Throw(base::ErrorCode::kNotFound, "chat_template: '", override, "' is neither a file nor a template");
    }
    templates = {{"default", source}};
  }
  if (templates.empty()) return nullptr;
  const SpecialTokens tokens(tokenizer.special_tokens().begin(), tokenizer.special_tokens().end());
  return std::make_unique<ChatTemplate>(ChatTemplate::Create(std::move(templates), tokens).ValueOrThrow());
}

GenerationDefaults LoadGenerationDefaults(const Checkpoint& checkpoint, const Tokenizer& tokenizer,
                                          const std::string& setting) {
  GenerationDefaults defaults;
  const auto add_eos = [&](int64_t id) {
    const auto known = static_cast<int32_t>(id);
    auto& ids = defaults.extra_eos_token_ids;
    if (id >= 0 && tokenizer.eos_id() != known && std::find(ids.begin(), ids.end(), known) == ids.end())
      ids.push_back(known);
  };
  if (tokenizer.eot_id()) add_eos(*tokenizer.eot_id());
  if (setting == "vllm") return defaults;
  Config config = checkpoint.generation_config;
  if (setting != "auto") config = Config::FromFile(setting + "/generation_config.json");
  if (config.empty()) return defaults;
  if (const ConfigValue* eos = config.raw("eos_token_id")) {
    if (eos->kind == ConfigValue::Kind::kInt) add_eos(eos->integer);
    for (const ConfigValue& item : eos->items)
      if (item.kind == ConfigValue::Kind::kInt) add_eos(item.integer);
  }
  defaults.temperature = config.find<double>("temperature");
  defaults.top_p = config.find<double>("top_p");
  defaults.min_p = config.find<double>("min_p");
  defaults.repetition_penalty = config.find<double>("repetition_penalty");
  defaults.top_k = config.find<int>("top_k");
  defaults.max_new_tokens = config.find<int64_t>("max_new_tokens");
  return defaults;
}

}  // namespace vllm
