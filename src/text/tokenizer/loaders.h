// The steps that the loaders share: tokenizer.json, tokenizer_config.json, SentencePiece files, GGUF metadata.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer/parts.h"
#include "text/tokenizer/tokenizer.h"

namespace vllm::tokenizer {

// tokenizer_config.json, special_tokens_map.json and the chat template files, as far as they matter here.
struct Config {
  std::optional<bool> add_bos = {}, add_eos = {};
  bool clean_up_spaces = false;
  std::map<std::string, AddedToken> special_tokens = {};  // by name: bos_token, …
  std::vector<AddedToken> extra_special_tokens = {};
  std::map<int64_t, AddedToken> added_tokens_decoder = {};  // by the id it is said to have
  std::map<std::string, std::string> chat_templates = {};   // by name
  bool for_bpe_too = false;                                 // clean_up_tokenization_spaces_for_bpe_…
};

// Reads tokenizer_config.json. Throws base::Exception (kBadFile); `file` stands in the message.
void ReadConfig(std::string_view text, const std::string& file, Config& config);
// Reads special_tokens_map.json; what `config` names already stays.
void ReadSpecialTokensMap(std::string_view text, const std::string& file, Config& config);
// Reads chat_template.json.
void ReadChatTemplateJson(std::string_view text, const std::string& file, Config& config);

// Adds the configuration's tokens, templates and special-token rules, and finishes `parts.added`.
void Finish(Parts& parts, AddedTokenList added, const Config& config);

// Each throws base::Exception; `file` stands in messages.
Parts ReadTokenizerJson(std::string_view text, const std::string& file, const Config& config);
Parts ReadSentencePiece(std::string_view bytes, const std::string& file, const Config& config);
Parts ReadGguf(const GgufVocab& vocab);

// Replace U+2581 by a space, bytes to characters, all joined; and, with `strip`, without the leading space.
std::vector<Decoder> SentencePieceDecoders(bool byte_fallback, bool strip);
Replace ReplaceLiteral(std::string from, std::string to);

// The split expressions of a `tokenizer.ggml.pre` name.
struct PreSplits {
  std::vector<std::string> patterns = {};  // applied one after another, matches isolated
  bool byte_level = true;
  bool ignore_merges = false;
  bool add_bos = false;
};
// Throws base::Exception (kUnsupported) with the name when it is unknown.
PreSplits SplitsOf(const std::string& pre);

}  // namespace vllm::tokenizer
