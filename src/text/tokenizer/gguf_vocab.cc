// Builds a tokenizer from GGUF metadata: byte-level BPE (gpt2), SentencePiece BPE (llama, gemma4), unigram (t5).
#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "base/limits.h"
#include "base/result.h"
#include "base/strings.h"
#include "text/tokenizer/loaders.h"
#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {
namespace {

constexpr int32_t kControl = 3, kUserDefined = 4;

[[noreturn]] void Bad(std::string_view key, std::string_view what) {
  base::Throw(base::ErrorCode::kBadFile, "tokenizer.ggml.", key, what.starts_with("[") ? "" : " ", what);
}

void Check(const GgufVocab& vocab) {
  const size_t count = vocab.tokens.size();
  if (count == 0) Bad("tokens", "is missing or empty");
  if (static_cast<int64_t>(count) > base::kMaxTokenId)
    Bad("tokens", base::StrCat("holds ", count, " tokens, more than ", base::kMaxTokenId));
  if (!vocab.scores.empty() && vocab.scores.size() != count)
    Bad("scores", base::StrCat("holds ", vocab.scores.size(), " numbers for ", count, " tokens"));
  if (!vocab.types.empty() && vocab.types.size() != count)
    Bad("token_type", base::StrCat("holds ", vocab.types.size(), " numbers for ", count, " tokens"));
  for (size_t id = 0; id < count; ++id) {
    const std::string& token = vocab.tokens[id];
    if (token.size() > base::kMaxTokenBytes)
      Bad("tokens", base::StrCat("[", id, "] has ", token.size(), " bytes, more than ", base::kMaxTokenBytes));
    if (!base::IsValidUtf8(token)) Bad("tokens", base::StrCat("[", id, "] is not valid UTF-8"));
  }
  for (const float score : vocab.scores) {
    if (score != score) Bad("scores", "holds a NaN");
  }
  if (!base::IsValidUtf8(vocab.chat_template))
    base::Throw(base::ErrorCode::kBadFile, "tokenizer.chat_template is not valid UTF-8");
}

// The id of a *_token_id key. One outside of the vocabulary is refused: it would index rows of the model.
std::optional<int32_t> SpecialId(const GgufVocab& vocab, const char* key, std::optional<int64_t> id) {
  if (!id) return std::nullopt;
  if (*id < 0 || *id >= static_cast<int64_t>(vocab.tokens.size())) {
    Bad(key, base::StrCat("is ", *id, ", outside of the ", vocab.tokens.size(), " tokens"));
  }
  return static_cast<int32_t>(*id);
}

bool IsByteSpelled(std::string_view token) {
  std::string bytes;
  return AppendSpelledBytes(bytes, token);
}

int32_t TypeOf(const GgufVocab& vocab, size_t id) { return vocab.types.empty() ? 1 : vocab.types[id]; }

// Merges as "left right" strings. Tokens hold no spaces of their own where merges are given, except as the very first
// character.
std::vector<Merge> ReadMerges(const GgufVocab& gguf, const Vocab& vocab) {
  std::vector<Merge> merges;
  merges.reserve(gguf.merges.size());
  std::string merged;
  for (size_t i = 0; i < gguf.merges.size(); ++i) {
    const std::string_view line = gguf.merges[i];
    const size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size())
      Bad("merges", base::StrCat("[", i, "] '", Shown(line), "' is not two tokens"));
    const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
    merged = left;
    merged += right;
    const auto left_id = vocab.Find(left), right_id = vocab.Find(right), id = vocab.Find(merged);
    if (!left_id || !right_id || !id) {
      const std::string_view missing = !left_id ? left : !right_id ? right : std::string_view(merged);
      Bad("merges", base::StrCat("[", i, "] needs token '", Shown(missing), "', which the vocabulary lacks"));
    }
    merges.push_back({*left_id, *right_id, *id, static_cast<uint32_t>(i)});
  }
  return merges;
}

Parts ByteLevelParts(const GgufVocab& gguf, const PreSplits& splits) {
  if (gguf.merges.empty()) Bad("merges", "is missing or empty; convert the model again");
  Vocab vocab;
  vocab.Reserve(gguf.tokens.size(), gguf.tokens.size() * 8);
  for (size_t id = 0; id < gguf.tokens.size(); ++id) {
    const std::string& token = gguf.tokens[id];
    const int32_t type = TypeOf(gguf, id);
    // A plain token that is not written in the byte alphabet stands for its own bytes; control tokens are matched as
    // they stand.
    if (splits.byte_level && type != kControl && type != kUserDefined && !IsByteSpelled(token)) {
      std::string spelled;
      for (const char c : token) spelled += ByteSpelling(static_cast<uint8_t>(c));
      vocab.Add(spelled, static_cast<int32_t>(id));
    } else {
      vocab.Add(token, static_cast<int32_t>(id));
    }
  }
  const std::vector<Merge> merges = ReadMerges(gguf, vocab);
  BpeOptions options;
  options.ignore_merges = splits.ignore_merges;
  Parts parts{.model = Bpe(std::move(vocab), merges, std::move(options))};
  for (const std::string& pattern : splits.patterns) {
    parts.pre_tokenizers.emplace_back(PatternSplit{Regex::FromOniguruma(pattern), SplitBehavior::kIsolated, false});
  }
  parts.pre_tokenizers.emplace_back(ByteLevelSplit{false, false, Gpt2Regex()});
  parts.decoders = {ByteLevelDecoder{}};
  return parts;
}

// Gemma files hold runs of spaces as real spaces, while text reaches the model with U+2581 in their place.
std::string SentencePieceSpelling(const std::string& token) {
  if (token.empty() || token.find_first_not_of(' ') != std::string::npos) return token;
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) out += kLowerBlock;
  return out;
}

Parts SentencePieceParts(const GgufVocab& gguf, bool gemma) {
  const size_t count = gguf.tokens.size();
  Vocab vocab;
  vocab.Reserve(count, count * 8);
  for (size_t id = 0; id < count; ++id) {
    vocab.Add(gemma ? SentencePieceSpelling(gguf.tokens[id]) : gguf.tokens[id], static_cast<int32_t>(id));
  }
  std::vector<Merge> merges;
  if (!gguf.merges.empty()) {
    merges = ReadMerges(gguf, vocab);
  } else {
    if (gguf.scores.empty() && !gemma) Bad("scores", "is missing, and so are the merges");
    std::vector<int32_t> ids;
    std::vector<double> scores(count);
    for (size_t id = 0; id < count; ++id) {
      // Gemma's scores do not follow the order of its merges; the order of the tokens does.
      scores[id] = gemma ? -static_cast<double>(id) : static_cast<double>(gguf.scores[id]);
      if (vocab.Has(static_cast<int32_t>(id)) &&
          vocab.Find(vocab.Text(static_cast<int32_t>(id))) == static_cast<int32_t>(id)) {
        ids.push_back(static_cast<int32_t>(id));
      }
    }
    merges = DeriveMerges(vocab, std::move(ids), scores, /*one_rank=*/false);
  }
  BpeOptions options;
  options.fuse_unk = true;
  options.byte_fallback = true;
  options.unk = SpecialId(gguf, "unknown_token_id", gguf.unk);
  if (!options.unk) options.unk = vocab.Find("<unk>");
  Parts parts{.model = Bpe(std::move(vocab), merges, std::move(options))};
  const bool prefix = gguf.add_space_prefix.value_or(!gemma);
  if (prefix) {
    parts.pre_tokenizers.emplace_back(MetaspaceSplit{std::string(kLowerBlock), PrependScheme::kFirst, false});
  } else {
    parts.normalizers.emplace_back(ReplaceLiteral(" ", std::string(kLowerBlock)));
  }
  parts.decoders = SentencePieceDecoders(/*byte_fallback=*/true, prefix);
  return parts;
}

Parts UnigramParts(const GgufVocab& gguf) {
  if (gguf.scores.empty()) Bad("scores", "is missing");
  Vocab vocab;
  std::vector<double> scores(gguf.scores.begin(), gguf.scores.end());
  std::vector<bool> usable(gguf.tokens.size(), true);
  bool bytes = false;
  for (size_t id = 0; id < gguf.tokens.size(); ++id) {
    vocab.Add(gguf.tokens[id], static_cast<int32_t>(id));
    const int32_t type = TypeOf(gguf, id);
    usable[id] = type == 1 || type == kUserDefined;
    bytes |= type == 6;
  }
  UnigramOptions options;
  options.unk = SpecialId(gguf, "unknown_token_id", gguf.unk);
  options.byte_fallback = bytes;
  Parts parts{.model = Unigram(std::move(vocab), std::move(scores), usable, options)};
  SentencePieceNormalizer normalizer;
  if (!gguf.precompiled_charsmap.empty()) normalizer.map = std::make_shared<const Charsmap>(gguf.precompiled_charsmap);
  normalizer.add_dummy_prefix = gguf.add_space_prefix.value_or(true);
  normalizer.remove_extra_whitespaces = gguf.remove_extra_whitespaces.value_or(false);
  parts.decoders = SentencePieceDecoders(bytes, normalizer.add_dummy_prefix);
  parts.normalizers.emplace_back(std::move(normalizer));
  return parts;
}

// The file's special tokens and templates, in the form of a tokenizer_config.json.
Config ConfigOf(const GgufVocab& gguf) {
  Config config;
  const auto name = [&](const char* key, const char* token, std::optional<int64_t> id) {
    const auto checked = SpecialId(gguf, key, id);
    if (!checked) return;
    AddedToken added;
    added.content = gguf.tokens[static_cast<size_t>(*checked)];
    added.special = true;
    config.special_tokens.emplace(token, added);
  };
  name("bos_token_id", "bos_token", gguf.bos);
  name("eos_token_id", "eos_token", gguf.eos);
  name("unknown_token_id", "unk_token", gguf.unk);
  name("padding_token_id", "pad_token", gguf.pad);
  name("seperator_token_id", "sep_token", gguf.sep);
  name("mask_token_id", "mask_token", gguf.mask);
  config.chat_templates = gguf.named_chat_templates;
  if (!gguf.chat_template.empty()) config.chat_templates["default"] = gguf.chat_template;
  return config;
}

}  // namespace

Parts ReadGguf(const GgufVocab& gguf) {
  Check(gguf);
  Config config = ConfigOf(gguf);
  const bool gemma = gguf.architecture.starts_with("gemma") || gguf.model == "gemma4";
  Parts parts = [&] {
    if (gguf.model == "gpt2") {
      const PreSplits splits = SplitsOf(gguf.pre);
      config.add_bos = gguf.add_bos.value_or(splits.add_bos);
      return splits.byte_level ? ByteLevelParts(gguf, splits) : SentencePieceParts(gguf, true);
    }
    if (gguf.model == "llama" || gguf.model == "gemma4") {
      config.add_bos = gguf.add_bos.value_or(true);
      return SentencePieceParts(gguf, gemma);
    }
    if (gguf.model == "t5") {
      config.add_bos = gguf.add_bos.value_or(false);
      return UnigramParts(gguf);
    }
    base::Throw(base::ErrorCode::kUnsupported, "tokenizer.ggml.model '", Shown(gguf.model),
                "' is not supported (supported: gpt2, llama, gemma4, t5)");
  }();
  config.add_eos = gguf.add_eos.value_or(gguf.model == "t5");
  AddedTokenList added(VocabOf(parts.model));
  for (size_t id = 0; id < gguf.tokens.size(); ++id) {
    const int32_t type = TypeOf(gguf, id);
    if (type != kControl && type != kUserDefined) continue;
    // A respelled run of spaces is an ordinary token of the vocabulary.
    if (type == kUserDefined && !VocabOf(parts.model).Find(gguf.tokens[id])) continue;
    AddedToken token;
    token.content = gguf.tokens[id];
    token.special = type == kControl;
    added.Add(std::move(token));
  }
  Finish(parts, std::move(added), config);
  parts.eot = SpecialId(gguf, "eot_token_id", gguf.eot);
  return parts;
}

}  // namespace vllm::tokenizer
