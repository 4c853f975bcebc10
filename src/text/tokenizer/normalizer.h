// Text rewriting before tokenization: the normalizers of tokenizer.json and SentencePiece's own.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/regex.h"
#include "text/tokenizer/unicode.h"

namespace vllm::tokenizer {

struct UnicodeForm {
  Form form = Form::kNfc;
};
struct Lowercase {};
struct Prepend {
  std::string text = {};
};
struct Replace {
  Regex pattern;
  std::string content = {};
  std::string literal = {};  // the pattern when it is a plain string: faster than the expression
};
struct Strip {
  bool left = true, right = true;
};
struct StripAccents {};
struct Nmt {};
struct ByteLevelNormalizer {};
struct Precompiled {
  std::shared_ptr<const Charsmap> map = {};  // shared by copies of the normalizer
};
struct BertNormalizer {
  bool clean_text = true, chinese_chars = true, strip_accents = true, lowercase = true;
};
// What SentencePiece does to a sentence: character map, dummy prefix, white space. Spaces become U+2581.
struct SentencePieceNormalizer {
  std::shared_ptr<const Charsmap> map = {};  // may be null
  bool add_dummy_prefix = true;              // only before the text's first segment
  bool remove_extra_whitespaces = false;
  bool suffix = false;  // the dummy goes to the end
};

using Normalizer = std::variant<UnicodeForm, Lowercase, Prepend, Replace, Strip, StripAccents, Nmt, ByteLevelNormalizer,
                                Precompiled, BertNormalizer, SentencePieceNormalizer>;

// `first`: the text starts at byte 0 of the whole input. Valid UTF-8 in and out.
std::string Normalize(const Normalizer& normalizer, std::string text, bool first);

// Every match of the pattern becomes the content.
std::string ReplaceAll(const Replace& replace, std::string text);

}  // namespace vllm::tokenizer
