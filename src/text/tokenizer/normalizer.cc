// One function per normalizer.
#include "text/tokenizer/normalizer.h"

namespace vllm::tokenizer {
namespace {

// Calls visit(out, character) for every character.
template <class Visit>
std::string MapChars(std::string_view text, Visit visit) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); at += CharBytes(text[at])) visit(out, CharAt(text, at));
  return out;
}

std::string Lower(std::string_view text) {
  return MapChars(text, [](std::string& out, char32_t c) { AppendLower(out, c); });
}

std::string Apply(const UnicodeForm& n, std::string text) { return Normalized(text, n.form); }
std::string Apply(const Lowercase&, std::string text) { return Lower(text); }
std::string Apply(const Prepend& n, std::string text) { return text.empty() ? text : n.text + text; }
std::string Apply(const Replace& n, std::string text) { return ReplaceAll(n, std::move(text)); }

std::string Apply(const Strip& n, std::string text) {
  size_t begin = 0, end = text.size();
  while (n.left && begin < end && IsWhitespace(CharAt(text, begin))) begin += CharBytes(text[begin]);
  while (n.right && end > begin && IsWhitespace(CharAt(text, CharBefore(text, end)))) end = CharBefore(text, end);
  return text.substr(begin, end - begin);
}

std::string Apply(const StripAccents&, std::string text) {
  return MapChars(text, [](std::string& out, char32_t c) {
    if (!IsMark(c)) AppendChar(out, c);
  });
}

// SentencePiece's "nmt" rules: control characters go, odd spaces become one kind.
std::string Apply(const Nmt&, std::string text) {
  return MapChars(text, [](std::string& out, char32_t c) {
    const bool dropped =
        (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
    const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                       c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    if (!dropped) AppendChar(out, space ? U' ' : c);
  });
}

std::string Apply(const ByteLevelNormalizer&, std::string text) {
  std::string out;
  out.reserve(text.size() * 2);
  for (const char c : text) out += ByteSpelling(static_cast<uint8_t>(c));
  return out;
}

// A short grapheme is looked up as a whole and replaced as a whole, even when only its beginning is in the map: so does
// the reference implementation (spm_precompiled), and vocabularies converted from SentencePiece are tested against it.
std::string Apply(const Precompiled& n, std::string text) {
  std::string out;
  out.reserve(text.size());
  const std::string_view view = text;
  for (size_t at = 0; at < view.size();) {
    const size_t end = GraphemeEnd(view, at);
    const std::string_view grapheme = view.substr(at, end - at);
    at = end;
    if (grapheme.size() < 6) {
      if (const auto match = n.map->Shortest(grapheme)) {
        out += match->replacement;
        continue;
      }
    }
    for (size_t i = 0; i < grapheme.size(); i += CharBytes(grapheme[i])) {
      const std::string_view part = grapheme.substr(i, CharBytes(grapheme[i]));
      const auto match = n.map->Shortest(part);
      out += match ? match->replacement : part;
    }
  }
  return out;
}

std::string Apply(const BertNormalizer& n, std::string text) {
  if (n.clean_text) {
    text = MapChars(text, [](std::string& out, char32_t c) {
      const bool space = c == '\t' || c == '\n' || c == '\r' || IsWhitespace(c);
      const bool control = c != '\t' && c != '\n' && c != '\r' && IsOther(c);
      if (c != 0 && c != 0xFFFD && !control) AppendChar(out, space ? U' ' : c);
    });
  }
  if (n.chinese_chars) {
    text = MapChars(text, [](std::string& out, char32_t c) {
      if (IsChinese(c)) out += ' ';
      AppendChar(out, c);
      if (IsChinese(c)) out += ' ';
    });
  }
  if (n.strip_accents) {
    text = MapChars(Normalized(text, Form::kNfd), [](std::string& out, char32_t c) {
      if (!IsNonspacingMark(c)) AppendChar(out, c);
    });
  }
  return n.lowercase ? Lower(text) : text;
}

std::string Apply(const SentencePieceNormalizer& n, const std::string& text, bool first) {
  std::string out;
  out.reserve(text.size() + 16);
  const bool dummy = n.add_dummy_prefix && first;
  bool skip_spaces = n.remove_extra_whitespaces;
  bool started = false;
  const std::string_view view = text;
  for (size_t at = 0; at < view.size();) {
    std::string_view part = view.substr(at, CharBytes(view[at]));
    size_t used = part.size();
    if (n.map != nullptr) {
      if (const auto match = n.map->Longest(view.substr(at))) {
        part = match->replacement;
        used = match->bytes;
      }
    }
    at += used;
    while (skip_spaces && !part.empty() && part[0] == ' ') part.remove_prefix(1);
    if (part.empty()) continue;
    if (!started && dummy && !n.suffix) out += kLowerBlock;
    started = true;
    for (const char c : part) {
      if (c == ' ') {
        out += kLowerBlock;
      } else {
        out += c;
      }
    }
    skip_spaces = n.remove_extra_whitespaces && part.back() == ' ';
  }
  while (n.remove_extra_whitespaces && out.ends_with(kLowerBlock)) out.resize(out.size() - kLowerBlock.size());
  if (n.suffix && n.add_dummy_prefix && !out.empty()) out += kLowerBlock;
  return out;
}

}  // namespace

std::string ReplaceAll(const Replace& replace, std::string text) {
  std::string out;
  size_t from = 0;
  if (!replace.literal.empty()) {
    size_t at = text.find(replace.literal);
    if (at == std::string::npos) return text;
    out.reserve(text.size() + text.size() / 2);
    for (; at != std::string::npos; at = text.find(replace.literal, from)) {
      out.append(text, from, at - from);
      out += replace.content;
      from = at + replace.literal.size();
    }
  } else {
    for (Regex::Scan scan(replace.pattern, text); scan.Next(); from = scan.end()) {
      out.append(text, from, scan.begin() - from);
      out += replace.content;
    }
  }
  return out.append(text, from);
}

std::string Normalize(const Normalizer& normalizer, std::string text, bool first) {
  if (const auto* sentence = std::get_if<SentencePieceNormalizer>(&normalizer)) return Apply(*sentence, text, first);
  return std::visit(
      [&](const auto& n) -> std::string {
        if constexpr (std::is_same_v<decltype(n), const SentencePieceNormalizer&>) {
          return text;
        } else {
          return Apply(n, std::move(text));
        }
      },
      normalizer);
}

}  // namespace vllm::tokenizer
