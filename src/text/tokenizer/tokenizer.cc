// Runs the pipeline: added tokens, normalizers, pre-tokenizers, model, special tokens; and back.
#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/result.h"
#include "base/strings.h"
#include "text/tokenizer/parts.h"

namespace vllm {
namespace {

using tokenizer::Parts;
using tokenizer::Pieces;
using tokenizer::Segment;

// Tokenizes stretches of text between added tokens with one working memory.
class Encoder {
 public:
  Encoder(const Parts& parts, std::vector<int32_t>& out, bool parse_special)
      : parts_(parts), out_(out), parse_special_(parse_special) {}

  void Run(std::string_view text) {
    for (const Segment& segment : parts_.added.Split(text, /*normalized=*/false, parse_special_)) {
      if (segment.id >= 0) {
        out_.push_back(segment.id);
      } else {
        Text(std::string(text.substr(segment.begin, segment.end - segment.begin)), segment.begin == 0);
      }
    }
  }

 private:
  void Text(std::string text, bool first) {
    text = NormalizeAll(parts_.normalizers, std::move(text), first);
    if (!parts_.added.has_normalized()) {
      Model(std::move(text), first);
      return;
    }
    for (const Segment& segment : parts_.added.Split(text, /*normalized=*/true, parse_special_)) {
      if (segment.id >= 0) {
        out_.push_back(segment.id);
      } else {
        Model(text.substr(segment.begin, segment.end - segment.begin), first && segment.begin == 0);
      }
    }
  }

  void Model(std::string text, bool first) {
    const Pieces pieces = PreTokenize(parts_.pre_tokenizers, std::move(text), first);
    std::visit(
        [&](const auto& model) {
          typename std::remove_cvref_t<decltype(model)>::Scratch scratch;
          for (const Pieces::Span& span : pieces.spans) {
            model.Tokenize(std::string_view(pieces.text).substr(span.begin, span.end - span.begin), out_, scratch);
          }
        },
        parts_.model);
  }

  const Parts& parts_;
  std::vector<int32_t>& out_;
  bool parse_special_;
};

std::optional<int32_t> NamedId(const Tokenizer& tokenizer, const std::string& name) {
  const auto found = tokenizer.special_tokens().find(name);
  return found == tokenizer.special_tokens().end() ? std::nullopt : tokenizer.TokenId(found->second);
}

}  // namespace

Tokenizer::Tokenizer(Parts parts) : parts_(std::make_unique<const Parts>(std::move(parts))) {}
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::Encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > base::kMaxTokenizeBytes) {
    base::Throw(base::ErrorCode::kInvalidArgument, "a text of ", text.size(),
                " bytes exceeds the tokenizer's limit of ", base::kMaxTokenizeBytes);
  }
  std::vector<int32_t> ids;
  if (options.add_special_tokens) ids = parts_->prefix;
  std::string repaired;
  if (!base::IsValidUtf8(text)) {
    repaired = base::ReplaceInvalidUtf8(text);
    text = repaired;
  }
  ids.reserve(ids.size() + text.size() / 3 + 8);
  Encoder(*parts_, ids, options.parse_special).Run(text);
  if (options.add_special_tokens) ids.insert(ids.end(), parts_->suffix.begin(), parts_->suffix.end());
  return ids;
}

bool Tokenizer::DecodesByBytes() const {
  return parts_->decoders.size() == 1 && std::holds_alternative<tokenizer::ByteLevelDecoder>(parts_->decoders[0]);
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, DecodeOptions options) const {
  std::string text;
  if (DecodesByBytes()) {
    for (const int32_t id : ids) {
      const tokenizer::AddedToken* added = parts_->added.Find(id);
      if (added != nullptr && added->special && options.skip_special_tokens) continue;
      // "" of an id that does not exist
      const std::string_view spelled = added ? parts_->added.DecodedText(*added) : VocabOf(parts_->model).Text(id);
      if (!tokenizer::AppendSpelledBytes(text, spelled)) text += spelled;  // an added token stands for itself
    }
    if (!base::IsValidUtf8(text)) text = base::ReplaceInvalidUtf8(text);
  } else {
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const int32_t id : ids)
      if (Exists(id) && !(options.skip_special_tokens && IsSpecial(id))) tokens.emplace_back(DecodeText(id));
    text = tokenizer::DecodeTokens(parts_->decoders, std::move(tokens));
  }
  return parts_->clean_up_spaces && options.clean_up_spaces ? tokenizer::CleanUpSpaces(std::move(text)) : text;
}

// The string that decoders start from.
std::string_view Tokenizer::DecodeText(int32_t id) const {
  const tokenizer::AddedToken* added = parts_->added.Find(id);
  return added != nullptr ? parts_->added.DecodedText(*added) : VocabOf(parts_->model).Text(id);
}

std::string Tokenizer::TokenBytes(int32_t id) const {
  if (const tokenizer::AddedToken* added = parts_->added.Find(id)) return added->content;
  return tokenizer::BytesOfToken(parts_->decoders, std::string(TokenText(id)));
}

std::string_view Tokenizer::TokenText(int32_t id) const {
  const tokenizer::AddedToken* added = parts_->added.Find(id);
  return added != nullptr ? std::string_view(added->content) : VocabOf(parts_->model).Text(id);
}

std::optional<int32_t> Tokenizer::TokenId(std::string_view text) const {
  const auto added = parts_->added.Id(text);
  return added ? added : VocabOf(parts_->model).Find(text);
}

bool Tokenizer::Exists(int32_t id) const { return IsAdded(id) || VocabOf(parts_->model).Has(id); }

bool Tokenizer::IsSpecial(int32_t id) const {
  const tokenizer::AddedToken* added = parts_->added.Find(id);
  return added != nullptr && added->special;
}

bool Tokenizer::IsAdded(int32_t id) const { return parts_->added.Find(id) != nullptr; }

int32_t Tokenizer::vocab_size() const {
  int32_t size = VocabOf(parts_->model).id_end();
  for (const tokenizer::AddedToken& token : parts_->added.tokens()) size = std::max(size, token.id + 1);
  return size;
}

size_t Tokenizer::max_token_chars() const { return parts_->max_token_chars; }

std::optional<int32_t> Tokenizer::bos_id() const { return NamedId(*this, "bos_token"); }
std::optional<int32_t> Tokenizer::eos_id() const { return NamedId(*this, "eos_token"); }
std::optional<int32_t> Tokenizer::unk_id() const { return NamedId(*this, "unk_token"); }
std::optional<int32_t> Tokenizer::pad_id() const { return NamedId(*this, "pad_token"); }
std::optional<int32_t> Tokenizer::eot_id() const { return parts_->eot; }

bool Tokenizer::adds_bos() const { return bos_id() && !parts_->prefix.empty() && parts_->prefix.front() == *bos_id(); }
bool Tokenizer::adds_eos() const { return eos_id() && !parts_->suffix.empty() && parts_->suffix.back() == *eos_id(); }

const std::map<std::string, std::string>& Tokenizer::special_tokens() const { return parts_->special_tokens; }
const std::map<std::string, std::string>& Tokenizer::chat_templates() const { return parts_->chat_templates; }

const std::string& Tokenizer::chat_template() const {
  static const std::string none;
  const auto found = parts_->chat_templates.find("default");
  return found == parts_->chat_templates.end() ? none : found->second;
}

}  // namespace vllm
