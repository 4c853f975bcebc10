// Reads SentencePiece's tokenizer.model: a small protobuf reader, and the tokenizer that the file describes.
#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include "base/limits.h"
#include "base/result.h"
#include "base/strings.h"
#include "text/tokenizer/loaders.h"
#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {
namespace {

// The fields of one protobuf message, one by one, every length checked.
class Message {
 public:
  Message(std::string_view bytes, const std::string& file, std::string_view name)
      : bytes_(bytes), file_(file), name_(name) {}

  [[noreturn]] void Bad(std::string_view what) const {
    base::Throw(base::ErrorCode::kBadFile, file_, ": ", name_, " ", what, " at byte ", at_);
  }

  // Moves to the next field; false at the end.
  bool Next() {
    if (at_ == bytes_.size()) return false;
    const uint64_t tag = Varint();
    field_ = tag >> 3;
    if (field_ == 0) Bad("has a field of number 0");
    wire_ = static_cast<int>(tag & 7);
    switch (wire_) {
      case 0:
        value_ = Varint();
        break;
      case 1:
        value_ = Fixed(8);
        break;
      case 2:
        data_ = Take(Varint());
        break;
      case 5:
        value_ = Fixed(4);
        break;
      default:
        Bad("has a field of an unknown wire type");
    }
    return true;
  }
  uint64_t field() const { return field_; }
  std::string_view Bytes() const { return Need(2), data_; }
  std::string_view Text() const {
    if (!base::IsValidUtf8(Bytes())) Bad("holds a string that is not valid UTF-8, which ends");
    return data_;
  }
  int64_t Int() const { return Need(0), static_cast<int64_t>(value_); }
  bool Bool() const { return Int() != 0; }
  float Float() const { return Need(5), std::bit_cast<float>(static_cast<uint32_t>(value_)); }
  Message Nested(std::string_view name) const { return Message(Bytes(), file_, name); }

 private:
  void Need(int wire) const {
    if (wire_ != wire) Bad("has field " + std::to_string(field_) + " of the wrong wire type, which ends");
  }
  uint64_t Varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) Bad("is cut off");
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      out |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return out;
    }
    Bad("has a number of more than 64 bits");
  }
  std::string_view Take(uint64_t size) {
    if (size > bytes_.size() - at_) Bad("is cut off");
    const std::string_view out = bytes_.substr(at_, size);
    at_ += size;
    return out;
  }
  uint64_t Fixed(size_t size) {
    uint64_t out = 0;
    const std::string_view bytes = Take(size);
    for (size_t i = 0; i < size; ++i) out |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
    return out;
  }

  std::string_view bytes_;
  const std::string& file_;
  std::string_view name_;
  size_t at_ = 0;
  uint64_t field_ = 0;
  int wire_ = 0;
  uint64_t value_ = 0;
  std::string_view data_;
};

enum PieceType : int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct Piece {
  std::string_view text = {};
  float score = 0;
  int64_t type = kNormal;
};

// Field numbers and defaults of sentencepiece_model.proto.
struct SpModel {
  std::vector<Piece> pieces = {};
  int64_t model_type = 1;  // 1 unigram, 2 BPE, 3 word, 4 char
  bool byte_fallback = false, whitespace_as_suffix = false;
  int64_t unk = 0, bos = 1, eos = 2, pad = -1;
  std::string_view charsmap = {};
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
};

Piece ReadPiece(Message message) {
  Piece out;
  while (message.Next()) {
    if (message.field() == 1) out.text = message.Text();
    if (message.field() == 2) out.score = message.Float();
    if (message.field() == 3) out.type = message.Int();
  }
  if (out.text.size() > base::kMaxTokenBytes)
    message.Bad("of " + std::to_string(out.text.size()) + " bytes is too long, which ends");
  if (out.score != out.score) message.Bad("has a score that is no number, which ends");
  return out;
}

void ReadTrainerSpec(Message message, SpModel& out) {
  while (message.Next()) {
    switch (message.field()) {
      case 3:
        out.model_type = message.Int();
        break;
      case 24:
        out.whitespace_as_suffix = message.Bool();
        break;
      case 35:
        out.byte_fallback = message.Bool();
        break;
      // int32 fields: negative numbers are sign-extended to ten bytes.
      case 40:
        out.unk = message.Int();
        break;
      case 41:
        out.bos = message.Int();
        break;
      case 42:
        out.eos = message.Int();
        break;
      case 43:
        out.pad = message.Int();
        break;
      default:
        break;
    }
  }
}

void ReadNormalizerSpec(Message message, SpModel& out) {
  while (message.Next()) {
    switch (message.field()) {
      case 2:
        out.charsmap = message.Bytes();
        break;
      case 3:
        out.add_dummy_prefix = message.Bool();
        break;
      case 4:
        out.remove_extra_whitespaces = message.Bool();
        break;
      case 5:
        out.escape_whitespaces = message.Bool();
        break;
      default:
        break;
    }
  }
}

SpModel ReadModel(std::string_view bytes, const std::string& file) {
  SpModel out;
  Message message(bytes, file, "the model");
  while (message.Next()) {
    if (message.field() == 1) {
      out.pieces.push_back(ReadPiece(message.Nested("a piece")));
      if (static_cast<int64_t>(out.pieces.size()) > base::kMaxTokenId) message.Bad("has too many pieces, the last");
    }
    if (message.field() == 2) ReadTrainerSpec(message.Nested("trainer_spec"), out);
    if (message.field() == 3) ReadNormalizerSpec(message.Nested("normalizer_spec"), out);
  }
  if (out.pieces.empty()) base::Throw(base::ErrorCode::kBadFile, file, ": no pieces (is this a SentencePiece model?)");
  return out;
}

bool IsUsable(const Piece& piece) { return piece.type == kNormal || piece.type == kUserDefined; }

tokenizer::Model MakeModel(const SpModel& sp, const std::string& file, std::optional<int32_t> unk) {
  const size_t count = sp.pieces.size();
  Vocab vocab;
  vocab.Reserve(count, count * 8);
  std::vector<double> scores(count);
  std::vector<bool> usable(count);
  for (size_t id = 0; id < count; ++id) {
    vocab.Add(sp.pieces[id].text, static_cast<int32_t>(id));
    scores[id] = static_cast<double>(sp.pieces[id].score);
    usable[id] = IsUsable(sp.pieces[id]);
  }
  if (sp.model_type == 1) {
    return Unigram(std::move(vocab), std::move(scores), usable, {.unk = unk, .byte_fallback = sp.byte_fallback});
  }
  if (sp.model_type != 2) {
    base::Throw(base::ErrorCode::kUnsupported, file, ": trainer_spec.model_type ", sp.model_type,
                " is not supported (supported: 1 unigram, 2 BPE)");
  }
  std::vector<int32_t> ids;
  for (size_t id = 0; id < count; ++id) {
    if (usable[id]) ids.push_back(static_cast<int32_t>(id));
  }
  const std::vector<Merge> merges = DeriveMerges(vocab, std::move(ids), scores, /*one_rank=*/true);
  BpeOptions options;
  options.unk = unk;
  options.fuse_unk = true;
  options.byte_fallback = sp.byte_fallback;
  return Bpe(std::move(vocab), merges, std::move(options));
}

}  // namespace

Parts ReadSentencePiece(std::string_view bytes, const std::string& file, const Config& given) {
  if (bytes.size() > base::kMaxTokenizerFileBytes) {
    base::Throw(base::ErrorCode::kBadFile, file, ": ", bytes.size(), " bytes exceed the limit of ",
                base::kMaxTokenizerFileBytes);
  }
  const SpModel sp = ReadModel(bytes, file);
  if (!sp.escape_whitespaces)
    base::Throw(base::ErrorCode::kUnsupported, file, ": normalizer_spec.escape_whitespaces false is not supported");
  Config config = given;
  const auto name = [&](const char* field, const char* token, int64_t id) -> std::optional<int32_t> {
    if (id < 0) return std::nullopt;
    if (id >= static_cast<int64_t>(sp.pieces.size())) {
      base::Throw(base::ErrorCode::kBadFile, file, ": trainer_spec.", field, " ", id, " is outside of the ",
                  sp.pieces.size(), " pieces");
    }
    AddedToken added;
    added.content = sp.pieces[static_cast<size_t>(id)].text;
    added.special = true;
    config.special_tokens.emplace(token, added);  // what tokenizer_config.json says comes first
    return static_cast<int32_t>(id);
  };
  const auto unk = name("unk_id", "unk_token", sp.unk);
  name("bos_id", "bos_token", sp.bos);
  name("eos_id", "eos_token", sp.eos);
  name("pad_id", "pad_token", sp.pad);
  Parts parts{.model = MakeModel(sp, file, unk)};
  SentencePieceNormalizer normalizer;
  if (!sp.charsmap.empty()) normalizer.map = std::make_shared<const Charsmap>(sp.charsmap);
  normalizer.add_dummy_prefix = sp.add_dummy_prefix;
  normalizer.remove_extra_whitespaces = sp.remove_extra_whitespaces;
  normalizer.suffix = sp.whitespace_as_suffix;
  parts.normalizers.emplace_back(std::move(normalizer));
  parts.decoders = SentencePieceDecoders(sp.byte_fallback, sp.add_dummy_prefix && !sp.whitespace_as_suffix);
  AddedTokenList added(VocabOf(parts.model));
  for (const Piece& piece : sp.pieces) {
    if (piece.type != kControl && piece.type != kUserDefined) continue;
    AddedToken token;
    token.content = piece.text;
    token.special = piece.type == kControl;
    added.Add(std::move(token));
  }
  Finish(parts, std::move(added), config);
  return parts;
}

}  // namespace vllm::tokenizer
