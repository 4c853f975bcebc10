// Reads Hugging Face's tokenizer.json. A component that is not supported is refused by name.
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/result.h"
#include "text/tokenizer/loaders.h"
#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {
namespace {

namespace dom = simdjson::dom;

// One value of the file together with its place in it, for messages.
class Json {
 public:
  Json(const std::string& file, std::string path, dom::element value)
      : file_(file), path_(std::move(path)), value_(value) {}

  [[noreturn]] void Fail(base::ErrorCode code, std::string_view what) const {
    base::Throw(code, file_, ": ", path_.empty() ? "the file" : path_, " ", what);
  }
  [[noreturn]] void Bad(std::string_view what) const { Fail(base::ErrorCode::kBadFile, what); }
  [[noreturn]] void Unsupported(std::string_view value) const {
    Fail(base::ErrorCode::kUnsupported, "'" + Shown(value) + "' is not supported");
  }
  // Runs read() and puts this place before the message of what it throws.
  template <class Read>
  auto Located(Read read) const {
    try {
      return read();
    } catch (const base::Exception& e) {
      Fail(e.code(), std::string("is not usable: ") + e.what());
    }
  }

  bool Has(const char* key) const {
    dom::element value;
    return Object().at_key(key).get(value) == simdjson::SUCCESS && !value.is_null();
  }
  Json operator[](const char* key) const {
    dom::element value;
    if (Object().at_key(key).get(value) != simdjson::SUCCESS) Bad("has no field '" + std::string(key) + "'");
    return Json(file_, path_.empty() ? key : path_ + "." + key, value);
  }
  Json At(size_t index, dom::element value) const {
    return Json(file_, path_ + "[" + std::to_string(index) + "]", value);
  }

  dom::object Object() const {
    dom::object out;
    if (value_.get(out) != simdjson::SUCCESS) Bad("is no object");
    return out;
  }
  dom::array Array() const {
    dom::array out;
    if (value_.get(out) != simdjson::SUCCESS) Bad("is no array");
    return out;
  }
  bool is_array() const { return value_.is_array(); }
  bool is_string() const { return value_.is_string(); }
  std::string_view String() const {
    std::string_view out;
    if (value_.get(out) != simdjson::SUCCESS) Bad("is no string");
    return out;
  }
  bool Bool() const {
    bool out = false;
    if (value_.get(out) != simdjson::SUCCESS) Bad("is not true or false");
    return out;
  }
  double Number() const {
    double out = 0;
    if (value_.get(out) != simdjson::SUCCESS) Bad("is no number");
    return out;
  }
  int64_t Int(int64_t low, int64_t high) const {
    int64_t out = 0;
    if (value_.get(out) != simdjson::SUCCESS || out < low || out > high) {
      Bad("is no integer from " + std::to_string(low) + " to " + std::to_string(high));
    }
    return out;
  }
  int32_t Id() const { return static_cast<int32_t>(Int(0, base::kMaxTokenId)); }

  bool BoolOr(const char* key, bool otherwise) const { return Has(key) ? (*this)[key].Bool() : otherwise; }
  std::string StringOr(const char* key, std::string_view otherwise) const {
    return std::string(Has(key) ? (*this)[key].String() : otherwise);
  }
  std::string OneChar(const char* key) const {
    const Json value = (*this)[key];
    const std::string_view text = value.String();
    if (CountChars(text) != 1) value.Bad("is not one character");
    return std::string(text);
  }

 private:
  const std::string& file_;
  std::string path_;
  dom::element value_;
};

std::string DecodeBase64(const Json& json) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : json.String()) {
    if (c == '=') break;
    int value = -1;
    if (c >= 'A' && c <= 'Z') value = c - 'A';
    if (c >= 'a' && c <= 'z') value = c - 'a' + 26;
    if (c >= '0' && c <= '9') value = c - '0' + 52;
    if (c == '+') value = 62;
    if (c == '/') value = 63;
    if (value < 0) json.Bad("is no base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xFF);
  }
  return out;
}

// {"String": "…"} or {"Regex": "…"}.
Replace ReadReplace(const Json& json) {
  const Json pattern = json["pattern"];
  const std::string content(json["content"].String());
  if (pattern.Has("String")) return ReplaceLiteral(std::string(pattern["String"].String()), content);
  const Json regex = pattern["Regex"];
  return {regex.Located([&] { return Regex::FromOniguruma(regex.String()); }), content, ""};
}

void ReadNormalizer(const Json& json, int depth, std::vector<Normalizer>& out) {
  if (depth > base::kMaxTokenizerNesting) json.Bad("is nested too deep");
  const std::string_view type = json["type"].String();
  if (type == "Sequence") {
    const Json list = json["normalizers"];
    size_t index = 0;
    for (const dom::element value : list.Array()) ReadNormalizer(list.At(index++, value), depth + 1, out);
  } else if (type == "NFC") {
    out.emplace_back(UnicodeForm{Form::kNfc});
  } else if (type == "NFD") {
    out.emplace_back(UnicodeForm{Form::kNfd});
  } else if (type == "NFKC") {
    out.emplace_back(UnicodeForm{Form::kNfkc});
  } else if (type == "NFKD") {
    out.emplace_back(UnicodeForm{Form::kNfkd});
  } else if (type == "Lowercase") {
    out.emplace_back(Lowercase{});
  } else if (type == "Prepend") {
    out.emplace_back(Prepend{std::string(json["prepend"].String())});
  } else if (type == "Replace") {
    out.emplace_back(ReadReplace(json));
  } else if (type == "Strip") {
    out.emplace_back(Strip{json["strip_left"].Bool(), json["strip_right"].Bool()});
  } else if (type == "StripAccents") {
    out.emplace_back(StripAccents{});
  } else if (type == "Nmt") {
    out.emplace_back(Nmt{});
  } else if (type == "ByteLevel") {
    out.emplace_back(ByteLevelNormalizer{});
  } else if (type == "Precompiled") {
    const Json map = json["precompiled_charsmap"];
    out.emplace_back(Precompiled{map.Located([&] { return std::make_shared<const Charsmap>(DecodeBase64(map)); })});
  } else if (type == "BertNormalizer") {
    BertNormalizer bert;
    bert.clean_text = json["clean_text"].Bool();
    bert.chinese_chars = json["handle_chinese_chars"].Bool();
    bert.lowercase = json["lowercase"].Bool();
    bert.strip_accents = json.BoolOr("strip_accents", bert.lowercase);
    out.emplace_back(bert);
  } else {
    json.Unsupported(type);
  }
}

SplitBehavior ReadBehavior(const Json& json) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kNames = {{
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
  }};
  for (const auto& [name, behavior] : kNames) {
    if (json.String() == name) return behavior;
  }
  json.Unsupported(json.String());
}

MetaspaceSplit ReadMetaspace(const Json& json) {
  MetaspaceSplit out;
  out.replacement = json.OneChar("replacement");
  out.split = json.BoolOr("split", true);
  const std::string scheme = json.StringOr("prepend_scheme", "always");
  if (scheme == "first") {
    out.scheme = PrependScheme::kFirst;
  } else if (scheme == "never") {
    out.scheme = PrependScheme::kNever;
  } else if (scheme != "always") {
    json["prepend_scheme"].Unsupported(scheme);
  }
  if (!json.BoolOr("add_prefix_space", true)) {
    if (out.scheme != PrependScheme::kNever && json.Has("prepend_scheme"))
      json.Bad("has an add_prefix_space that contradicts its prepend_scheme");
    out.scheme = PrependScheme::kNever;
  }
  return out;
}

PatternSplit ReadSplit(const Json& json) {
  const Json pattern = json["pattern"];
  const SplitBehavior behavior = ReadBehavior(json["behavior"]);
  const bool invert = json["invert"].Bool();
  if (pattern.Has("String")) return {Regex::FromLiteral(pattern["String"].String()), behavior, invert};
  const Json regex = pattern["Regex"];
  return {regex.Located([&] { return Regex::FromOniguruma(regex.String()); }), behavior, invert};
}

void ReadPreTokenizer(const Json& json, int depth, std::vector<PreTokenizer>& out) {
  if (depth > base::kMaxTokenizerNesting) json.Bad("is nested too deep");
  const std::string_view type = json["type"].String();
  if (type == "Sequence") {
    const Json list = json["pretokenizers"];
    size_t index = 0;
    for (const dom::element value : list.Array()) ReadPreTokenizer(list.At(index++, value), depth + 1, out);
  } else if (type == "ByteLevel") {
    out.emplace_back(ByteLevelSplit{json["add_prefix_space"].Bool(), json.BoolOr("use_regex", true), Gpt2Regex()});
  } else if (type == "Split") {
    out.emplace_back(ReadSplit(json));
  } else if (type == "Digits") {
    const bool individual = json["individual_digits"].Bool();
    out.emplace_back(
        CharClassSplit{CharClass::kNumeric, individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous});
  } else if (type == "Punctuation") {
    const SplitBehavior behavior = json.Has("behavior") ? ReadBehavior(json["behavior"]) : SplitBehavior::kIsolated;
    out.emplace_back(CharClassSplit{CharClass::kPunctuation, behavior});
  } else if (type == "Metaspace") {
    out.emplace_back(ReadMetaspace(json));
  } else if (type == "Whitespace") {
    out.emplace_back(WordSplit{});
  } else if (type == "WhitespaceSplit") {
    out.emplace_back(CharClassSplit{CharClass::kWhitespace, SplitBehavior::kRemoved});
  } else if (type == "BertPreTokenizer") {
    out.emplace_back(CharClassSplit{CharClass::kWhitespace, SplitBehavior::kRemoved});
    out.emplace_back(CharClassSplit{CharClass::kPunctuation, SplitBehavior::kIsolated});
  } else if (type == "CharDelimiterSplit") {
    out.emplace_back(DelimiterSplit{json.OneChar("delimiter")});
  } else if (type == "FixedLength") {
    out.emplace_back(FixedLengthSplit{static_cast<size_t>(json["length"].Int(1, 1 << 20))});
  } else {
    json.Unsupported(type);
  }
}

void ReadDecoder(const Json& json, int depth, std::vector<Decoder>& out) {
  if (depth > base::kMaxTokenizerNesting) json.Bad("is nested too deep");
  const std::string_view type = json["type"].String();
  if (type == "Sequence") {
    const Json list = json["decoders"];
    size_t index = 0;
    for (const dom::element value : list.Array()) ReadDecoder(list.At(index++, value), depth + 1, out);
  } else if (type == "ByteLevel") {
    out.emplace_back(ByteLevelDecoder{});
  } else if (type == "ByteFallback") {
    out.emplace_back(ByteFallbackDecoder{});
  } else if (type == "Fuse") {
    out.emplace_back(FuseDecoder{});
  } else if (type == "Replace") {
    out.emplace_back(ReplaceDecoder{ReadReplace(json)});
  } else if (type == "Strip") {
    constexpr int64_t kMost = 1 << 20;
    out.emplace_back(StripDecoder{json.OneChar("content"), static_cast<size_t>(json["start"].Int(0, kMost)),
                                  static_cast<size_t>(json["stop"].Int(0, kMost))});
  } else if (type == "Metaspace") {
    const MetaspaceSplit metaspace = ReadMetaspace(json);
    out.emplace_back(MetaspaceDecoder{metaspace.replacement, metaspace.scheme != PrependScheme::kNever});
  } else if (type == "WordPiece") {
    out.emplace_back(WordPieceDecoder{std::string(json["prefix"].String()), json["cleanup"].Bool()});
  } else if (type == "BPEDecoder") {
    out.emplace_back(BpeDecoder{std::string(json["suffix"].String())});
  } else if (type == "CTC") {
    out.emplace_back(CtcDecoder{std::string(json["pad_token"].String()),
                                std::string(json["word_delimiter_token"].String()), json["cleanup"].Bool()});
  } else {
    json.Unsupported(type);
  }
}

void ReadTemplate(const Json& json, Parts& parts) {
  std::vector<int32_t> prefix, suffix;
  int sequences = 0;
  const Json single = json["single"];
  size_t index = 0;
  for (const dom::element value : single.Array()) {
    const Json piece = single.At(index++, value);
    if (piece.Has("Sequence")) {
      if (piece["Sequence"]["id"].String() != "A" || ++sequences > 1)
        single.Fail(base::ErrorCode::kUnsupported, "must hold sequence A once");
      continue;
    }
    const Json id = piece["SpecialToken"]["id"];
    const std::string name(id.String());
    const Json tokens = json["special_tokens"];
    if (!tokens.Has(name.c_str())) id.Bad("'" + Shown(name) + "' is not among special_tokens");
    const Json ids = tokens[name.c_str()]["ids"];
    size_t id_index = 0;
    for (const dom::element token : ids.Array())
      (sequences == 0 ? prefix : suffix).push_back(ids.At(id_index++, token).Id());
  }
  if (sequences != 1) single.Fail(base::ErrorCode::kUnsupported, "must hold sequence A once");
  parts.prefix.insert(parts.prefix.begin(), prefix.begin(), prefix.end());
  parts.suffix.insert(parts.suffix.end(), suffix.begin(), suffix.end());
}

// ["</s>", 2]
int32_t ReadTokenPair(const Json& json) {
  size_t index = 0;
  for (const dom::element value : json.Array()) {
    if (index++ == 1) return json.At(1, value).Id();
  }
  json.Bad("is no pair of token and id");
}

void ReadPostProcessor(const Json& json, int depth, Parts& parts) {
  if (depth > base::kMaxTokenizerNesting) json.Bad("is nested too deep");
  const std::string_view type = json["type"].String();
  if (type == "Sequence") {
    const Json list = json["processors"];
    size_t index = 0;
    for (const dom::element value : list.Array()) ReadPostProcessor(list.At(index++, value), depth + 1, parts);
  } else if (type == "TemplateProcessing") {
    ReadTemplate(json, parts);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    parts.prefix.insert(parts.prefix.begin(), ReadTokenPair(json["cls"]));
    parts.suffix.push_back(ReadTokenPair(json["sep"]));
  } else if (type != "ByteLevel") {  // which moves offsets only
    json.Unsupported(type);
  }
}

void CheckToken(const Json& json, std::string_view text) {
  if (text.size() > base::kMaxTokenBytes) json.Bad("holds a token of " + std::to_string(text.size()) + " bytes");
}

// {"token": id, …}
Vocab ReadVocab(const Json& json) {
  Vocab vocab;
  const dom::object object = json.Object();
  vocab.Reserve(object.size(), object.size() * 8);
  for (const dom::key_value_pair field : object) {
    CheckToken(json, field.key);
    int64_t id = 0;
    if (field.value.get(id) != simdjson::SUCCESS || id < 0 || id > base::kMaxTokenId) {
      json.Bad("gives token '" + Shown(field.key) + "' an id that is no integer from 0 to " +
               std::to_string(base::kMaxTokenId));
    }
    vocab.Add(field.key, static_cast<int32_t>(id));
  }
  return vocab;
}

class MergeReader {
 public:
  MergeReader(const Vocab& vocab, size_t prefix_chars) : vocab_(vocab), prefix_chars_(prefix_chars) {}

  std::vector<Merge> Read(const Json& json) {
    const dom::array list = json.Array();
    merges_.reserve(list.size());
    size_t index = 0;
    for (const dom::element value : list) {
      const Json place = json.At(index++, value);
      if (place.is_string()) {
        const std::string_view line = place.String();
        if (line.starts_with("#version")) continue;
        const size_t space = line.find(' ');
        if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
          place.Bad("is not two tokens");
        Add(place, line.substr(0, space), line.substr(space + 1));
        continue;
      }
      std::array<std::string_view, 2> pair;
      size_t count = 0;
      for (const dom::element part : place.Array()) {
        if (count == 2) place.Bad("is not two tokens");
        pair[count] = place.At(count, part).String();
        ++count;
      }
      if (count != 2) place.Bad("is not two tokens");
      Add(place, pair[0], pair[1]);
    }
    return std::move(merges_);
  }

 private:
  int32_t Find(const Json& place, std::string_view token) {
    const auto id = vocab_.Find(token);
    if (!id) place.Bad("needs token '" + Shown(token) + "', which the vocabulary lacks");
    return *id;
  }

  void Add(const Json& place, std::string_view left, std::string_view right) {
    size_t skip = 0;  // the prefix of continuing subwords vanishes where two parts meet
    for (size_t i = 0; i < prefix_chars_ && skip < right.size(); ++i) skip += CharBytes(right[skip]);
    merged_ = left;
    merged_ += right.substr(skip);
    merges_.push_back(
        {Find(place, left), Find(place, right), Find(place, merged_), static_cast<uint32_t>(merges_.size())});
  }

  const Vocab& vocab_;
  size_t prefix_chars_;
  std::vector<Merge> merges_;
  std::string merged_;
};

Model ReadBpe(const Json& json) {
  BpeOptions options;
  if (json.Has("dropout") && json["dropout"].Number() != 0) json["dropout"].Unsupported("dropout");
  options.fuse_unk = json.BoolOr("fuse_unk", false);
  options.byte_fallback = json.BoolOr("byte_fallback", false);
  options.ignore_merges = json.BoolOr("ignore_merges", false);
  options.continuing_subword_prefix = json.StringOr("continuing_subword_prefix", "");
  options.end_of_word_suffix = json.StringOr("end_of_word_suffix", "");
  Vocab vocab = ReadVocab(json["vocab"]);
  if (json.Has("unk_token")) {
    const std::string unk(json["unk_token"].String());
    options.unk = vocab.Find(unk);
    if (!options.unk) options.missing_unk = unk;
  }
  const std::vector<Merge> merges =
      MergeReader(vocab, CountChars(options.continuing_subword_prefix)).Read(json["merges"]);
  return Bpe(std::move(vocab), merges, std::move(options));
}

// [["token", score], …]
Model ReadUnigram(const Json& json) {
  Vocab vocab;
  std::vector<double> scores;
  const Json list = json["vocab"];
  size_t index = 0;
  for (const dom::element value : list.Array()) {
    const Json entry = list.At(index, value);
    size_t field = 0;
    for (const dom::element part : entry.Array()) {
      const Json place = entry.At(field, part);
      if (field == 0) {
        CheckToken(place, place.String());
        vocab.Add(place.String(), static_cast<int32_t>(index));
      } else {
        scores.push_back(place.Number());
      }
      ++field;
    }
    if (field != 2) entry.Bad("is no pair of token and score");
    if (static_cast<int64_t>(++index) > base::kMaxTokenId) list.Bad("holds too many tokens");
  }
  UnigramOptions options;
  options.byte_fallback = json.BoolOr("byte_fallback", false);
  if (json.Has("unk_id")) {
    const Json unk = json["unk_id"];
    options.unk = unk.Id();
    if (static_cast<size_t>(*options.unk) >= scores.size()) unk.Bad("is not in the vocabulary");
  }
  return Unigram(std::move(vocab), std::move(scores), {}, options);
}

int32_t ReadUnk(const Json& json, const Vocab& vocab) {
  const Json unk = json["unk_token"];
  const auto id = vocab.Find(unk.String());
  if (!id) unk.Bad("'" + Shown(unk.String()) + "' is not in the vocabulary");
  return *id;
}

Model ReadModel(const Json& json) {
  std::string type = json.StringOr("type", "");
  if (type.empty()) {  // files from before the field existed
    type = json.Has("merges")                      ? "BPE"
           : json.Has("continuing_subword_prefix") ? "WordPiece"
           : json["vocab"].is_array()              ? "Unigram"
                                                   : "WordLevel";
  }
  if (type == "BPE") return ReadBpe(json);
  if (type == "Unigram") return ReadUnigram(json);
  if (type != "WordPiece" && type != "WordLevel") json["type"].Unsupported(type);
  Vocab vocab = ReadVocab(json["vocab"]);
  const int32_t unk = ReadUnk(json, vocab);
  if (type == "WordLevel") return WordLevel(std::move(vocab), unk);
  constexpr int64_t kLongestWord = 4096;  // the search is quadratic in it
  const int64_t chars = json["max_input_chars_per_word"].Int(0, kLongestWord);
  const std::string prefix(json["continuing_subword_prefix"].String());
  return WordPiece(std::move(vocab), {unk, prefix, static_cast<size_t>(chars)});
}

void ReadAddedTokens(const Json& json, AddedTokenList& out) {
  size_t index = 0;
  for (const dom::element value : json.Array()) {
    const Json entry = json.At(index++, value);
    AddedToken token;
    token.content = entry["content"].String();
    CheckToken(entry, token.content);
    token.single_word = entry["single_word"].Bool();
    token.lstrip = entry["lstrip"].Bool();
    token.rstrip = entry["rstrip"].Bool();
    token.normalized = entry["normalized"].Bool();
    token.special = entry["special"].Bool();
    const int32_t stated = entry["id"].Id();
    const int32_t id = out.Add(token);
    if (id >= 0 && id != stated) {
      base::LogWarning("added token '", Shown(token.content), "' has id ", id, ", not ", stated, " as the file says");
    }
  }
}

}  // namespace

Parts ReadTokenizerJson(std::string_view text, const std::string& file, const Config& config) {
  if (text.size() > base::kMaxTokenizerFileBytes) {
    base::Throw(base::ErrorCode::kBadFile, file, ": ", text.size(), " bytes exceed the limit of ",
                base::kMaxTokenizerFileBytes);
  }
  dom::parser parser;
  dom::element root;
  if (const auto error = parser.parse(text.data(), text.size(), /*realloc_if_needed=*/true).get(root)) {
    base::Throw(base::ErrorCode::kBadFile, file, ": no valid JSON: ", simdjson::error_message(error));
  }
  const Json json(file, "", root);
  Parts parts{.model = ReadModel(json["model"])};
  if (json.Has("version") && json["version"].String() != "1.0") json["version"].Unsupported(json["version"].String());
  if (json.Has("normalizer")) ReadNormalizer(json["normalizer"], 0, parts.normalizers);
  if (json.Has("pre_tokenizer")) ReadPreTokenizer(json["pre_tokenizer"], 0, parts.pre_tokenizers);
  if (json.Has("decoder")) ReadDecoder(json["decoder"], 0, parts.decoders);
  if (json.Has("post_processor")) ReadPostProcessor(json["post_processor"], 0, parts);
  AddedTokenList added(VocabOf(parts.model));
  if (json.Has("added_tokens")) ReadAddedTokens(json["added_tokens"], added);
  Finish(parts, std::move(added), config);
  return parts;
}

}  // namespace vllm::tokenizer
