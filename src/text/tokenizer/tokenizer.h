// Tokenizer: text to token ids and back, exactly as Hugging Face's tokenizers do it, from tokenizer.json, SentencePiece
// or GGUF.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

namespace tokenizer {
struct Parts;
}

// The tokenizer of a GGUF file, as its metadata state it; `tokenizer.ggml.` keys unless said otherwise.
struct GgufVocab {
  std::string architecture = {};  // general.architecture: Gemma's merges are ordered by position, not by score
  std::string model = {};         // model: gpt2, llama, gemma4, t5
  std::string pre = {};           // pre: names the split expressions of gpt2 vocabularies
  std::vector<std::string> tokens = {};
  std::vector<float> scores = {};  // one a token, or empty
  std::vector<int32_t> types =
      {};  // token_type: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte; or empty
  std::vector<std::string> merges = {};  // "left right", best first
  std::optional<int64_t> bos = {}, eos = {}, unk = {}, pad = {}, sep = {}, mask = {}, eot = {};  // *_token_id
  std::optional<bool> add_bos = {}, add_eos = {};  // add_bos_token, add_eos_token
  std::optional<bool> add_space_prefix = {}, remove_extra_whitespaces = {};
  std::string precompiled_charsmap = {};                         // bytes
  std::string chat_template = {};                                // tokenizer.chat_template
  std::map<std::string, std::string> named_chat_templates = {};  // tokenizer.chat_template.NAME
};

struct EncodeOptions {
  bool add_special_tokens = true;  // what the tokenizer puts around a text: BOS, EOS
  bool parse_special = true;       // control tokens typed in the text become their ids
};

struct DecodeOptions {
  bool skip_special_tokens = true;
  bool spaces_between_special_tokens = true;  // seen by DetokenizeStream only, and only when special tokens are kept
  bool clean_up_spaces = true;                // apply clean_up_tokenization_spaces if the configuration asks for it
};

// Immutable after loading; every method may be called from any thread at the same time.
class Tokenizer {
 public:
  // Of a model folder: tokenizer.json, else tokenizer.model; with tokenizer_config.json, special_tokens_map.json,
  // chat_template.jinja and chat_template.json where they exist. Throws base::Exception: kNotFound, kBadFile,
  // kUnsupported; one line that names file, field, value.
  static std::unique_ptr<Tokenizer> FromDirectory(const std::string& path);
  // Of GGUF metadata. Throws base::Exception: kBadFile, kUnsupported; one line that names key and value.
  static std::unique_ptr<Tokenizer> FromGguf(const GgufVocab& vocab);
  // Of the texts themselves; `config` is tokenizer_config.json or "".
  static std::unique_ptr<Tokenizer> FromTokenizerJson(std::string_view json, std::string_view config = "");
  static std::unique_ptr<Tokenizer> FromSentencePiece(std::string_view proto, std::string_view config = "");
  explicit Tokenizer(tokenizer::Parts parts);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Invalid UTF-8 counts as U+FFFD. Near-linear time for any input. Throws base::Exception (kInvalidArgument) for a
  // text above base::kMaxTokenizeBytes, for a character that a vocabulary without unknown token lacks, and when the
  // tokenizer's own expression exceeds its backtracking limit.
  std::vector<int32_t> Encode(std::string_view text, EncodeOptions options = {}) const;
  // Valid UTF-8; ids that do not exist are left out, as transformers does. Bytes that form no character become U+FFFD.
  std::string Decode(std::span<const int32_t> ids, DecodeOptions options = {}) const;

  // Whether the bytes of a decoded text are those of its tokens one after the other, whatever their neighbours are.
  bool DecodesByBytes() const;

  // The raw bytes that a token adds to the text, possibly part of a character; "" for an id that does not exist.
  std::string TokenBytes(int32_t id) const;
  // The token as the vocabulary spells it (Ġthe, ▁the); "" for an id that does not exist.
  std::string_view TokenText(int32_t id) const;
  std::optional<int32_t> TokenId(std::string_view text) const;
  bool Exists(int32_t id) const;
  // Hidden by skip_special_tokens.
  bool IsSpecial(int32_t id) const;
  // Found in text as a whole, special or not.
  bool IsAdded(int32_t id) const;
  // One more than the largest id. Ids below it may be missing.
  int32_t vocab_size() const;
  // Characters of the longest token: a text of more than that times a number of tokens cannot fit into so many.
  size_t max_token_chars() const;

  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;
  std::optional<int32_t> unk_id() const;
  std::optional<int32_t> pad_id() const;
  // End of turn, where a GGUF names one apart from EOS.
  std::optional<int32_t> eot_id() const;
  // Whether Encode puts BOS first, EOS last.
  bool adds_bos() const;
  bool adds_eos() const;
  // Named special tokens (bos_token, eos_token, …) with their strings, as chat templates see them.
  const std::map<std::string, std::string>& special_tokens() const;
  // The template called "default", or "" if there is none.
  const std::string& chat_template() const;
  // All templates by name.
  const std::map<std::string, std::string>& chat_templates() const;

 private:
  std::string_view DecodeText(int32_t id) const;
  std::unique_ptr<const tokenizer::Parts> parts_;
};

}  // namespace vllm
