// Reads tokenizer_config.json and its companions, and finishes a tokenizer's parts with them.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "base/limits.h"
#include "base/result.h"
#include "text/tokenizer/loaders.h"
#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {
namespace {

using base::Json;

constexpr std::array<const char*, 7> kSpecialNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                      "pad_token", "cls_token", "mask_token"};

[[noreturn]] void Bad(const std::string& file, std::string_view field, std::string_view what) {
  base::Throw(base::ErrorCode::kBadFile, file, ": ", Shown(field), " ", what);
}

Json Parse(std::string_view text, const std::string& file) {
  if (text.size() > base::kMaxTokenizerFileBytes) Bad(file, "the file", "is too large");
  base::Result<Json> json = base::ParseJson(text, base::kMaxJsonDepth);
  if (!json.ok()) base::Throw(base::ErrorCode::kBadFile, file, ": ", json.error().message);
  if (!json->is_object()) Bad(file, "the file", "is no JSON object");
  return std::move(json).value();
}

std::string String(const Json& value, const std::string& file, std::string_view field) {
  if (!value.is_string()) Bad(file, field, "is no string");
  return value.get<std::string>();
}

std::optional<bool> Flag(const Json& json, const char* key, const std::string& file) {
  const auto found = json.find(key);
  if (found == json.end()) return std::nullopt;
  if (found->is_null()) return false;
  if (!found->is_boolean()) Bad(file, key, "is not true or false");
  return found->get<bool>();
}

// A token as a string or as an object with its flags. `special` holds where neither says so.
AddedToken Token(const Json& value, const std::string& file, std::string_view field, bool special) {
  AddedToken token;
  token.special = special;
  if (value.is_object()) {
    const auto content = value.find("content");
    if (content == value.end()) Bad(file, field, "has no content");
    token.content = String(*content, file, field);
    token.single_word = Flag(value, "single_word", file).value_or(false);
    token.lstrip = Flag(value, "lstrip", file).value_or(false);
    token.rstrip = Flag(value, "rstrip", file).value_or(false);
    token.special = Flag(value, "special", file).value_or(special);
    token.normalized = Flag(value, "normalized", file).value_or(!token.special);
  } else {
    token.content = String(value, file, field);
  }
  if (token.content.size() > base::kMaxTokenBytes) Bad(file, field, "is too long");
  return token;
}

void ReadSpecialTokens(const Json& json, const std::string& file, Config& config) {
  for (const char* name : kSpecialNames) {
    const auto found = json.find(name);
    if (found != json.end() && !found->is_null()) config.special_tokens.emplace(name, Token(*found, file, name, true));
  }
  for (const char* name : {"additional_special_tokens", "extra_special_tokens"}) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_structured()) continue;
    for (const auto& [key, value] : found->items()) {
      if (value.is_string() || value.is_object()) config.extra_special_tokens.push_back(Token(value, file, name, true));
    }
  }
}

void ReadTemplates(const Json& json, const std::string& file, Config& config) {
  const auto found = json.find("chat_template");
  if (found == json.end() || found->is_null()) return;
  if (found->is_string()) {
    config.chat_templates["default"] = found->get<std::string>();
    return;
  }
  if (found->is_object()) {
    for (const auto& [name, value] : found->items()) config.chat_templates[name] = String(value, file, "chat_template");
    return;
  }
  if (!found->is_array()) Bad(file, "chat_template", "is neither a string nor a list");
  for (const Json& entry : *found) {
    if (!entry.is_object() || !entry.contains("name") || !entry.contains("template")) {
      Bad(file, "chat_template", "holds an entry without name and template");
    }
    config.chat_templates[String(entry["name"], file, "chat_template name")] =
        String(entry["template"], file, "chat_template");
  }
}

}  // namespace

void ReadConfig(std::string_view text, const std::string& file, Config& config) {
  const Json json = Parse(text, file);
  config.add_bos = Flag(json, "add_bos_token", file);
  config.add_eos = Flag(json, "add_eos_token", file);
  config.clean_up_spaces = Flag(json, "clean_up_tokenization_spaces", file).value_or(false);
  config.for_bpe_too =
      Flag(json, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", file).value_or(false);
  ReadSpecialTokens(json, file, config);
  ReadTemplates(json, file, config);
  const auto decoder = json.find("added_tokens_decoder");
  if (decoder == json.end() || decoder->is_null()) return;
  if (!decoder->is_object()) Bad(file, "added_tokens_decoder", "is no object");
  for (const auto& [key, value] : decoder->items()) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id > base::kMaxTokenId) {
      Bad(file, "added_tokens_decoder", "has key '" + Shown(key) + "', which is no token id");
    }
    config.added_tokens_decoder[id] = Token(value, file, "added_tokens_decoder." + key, false);
  }
}

void ReadSpecialTokensMap(std::string_view text, const std::string& file, Config& config) {
  ReadSpecialTokens(Parse(text, file), file, config);
}

void ReadChatTemplateJson(std::string_view text, const std::string& file, Config& config) {
  ReadTemplates(Parse(text, file), file, config);
}

void Finish(Parts& parts, AddedTokenList added, const Config& config) {
  for (const auto& [id, token] : config.added_tokens_decoder) {
    if (!added.Has(token.content)) added.Add(token);
  }
  for (const char* name : kSpecialNames) {
    const auto found = config.special_tokens.find(name);
    if (found == config.special_tokens.end()) continue;
    parts.special_tokens[name] = found->second.content;
    if (!added.Has(found->second.content)) added.Add(found->second);
  }
  for (const AddedToken& token : config.extra_special_tokens) {
    if (!added.Has(token.content)) added.Add(token);
  }
  parts.added = std::move(added).Build(parts.normalizers);
  const Vocab& vocab = VocabOf(parts.model);
  for (int32_t id = 0; id < vocab.id_end(); ++id) {
    parts.max_token_chars = std::max(parts.max_token_chars, CountChars(vocab.Text(id)));
  }
  for (const AddedToken& token : parts.added.tokens()) {
    parts.max_token_chars = std::max(parts.max_token_chars, CountChars(token.content));
  }
  for (const auto& [name, text] : config.chat_templates) parts.chat_templates[name] = text;
  // The clean-up was made for word pieces; on BPE it would remove spaces that are in the text.
  parts.clean_up_spaces = config.clean_up_spaces && (config.for_bpe_too || !std::holds_alternative<Bpe>(parts.model));
  if (!config.add_bos && !config.add_eos) return;
  // Said explicitly, these two replace the post-processor.
  parts.prefix.clear();
  parts.suffix.clear();
  const auto id_of = [&](const char* name) {
    const auto found = parts.special_tokens.find(name);
    return found == parts.special_tokens.end() ? std::nullopt : parts.added.Id(found->second);
  };
  if (const auto bos = id_of("bos_token"); bos && config.add_bos.value_or(false)) parts.prefix = {*bos};
  if (const auto eos = id_of("eos_token"); eos && config.add_eos.value_or(false)) parts.suffix = {*eos};
}

Replace ReplaceLiteral(std::string from, std::string to) {
  Regex pattern = Regex::FromLiteral(from);
  return {std::move(pattern), std::move(to), std::move(from)};
}

std::vector<Decoder> SentencePieceDecoders(bool byte_fallback, bool strip) {
  std::vector<Decoder> out = {ReplaceDecoder{ReplaceLiteral(std::string(kLowerBlock), " ")}};
  if (byte_fallback) out.emplace_back(ByteFallbackDecoder{});
  out.emplace_back(FuseDecoder{});
  if (strip) out.emplace_back(StripDecoder{" ", 1, 0});
  return out;
}

}  // namespace vllm::tokenizer
