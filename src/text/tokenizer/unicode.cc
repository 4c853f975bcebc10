// Character properties by utf8proc, with the few that it lacks.
#include "text/tokenizer/unicode.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "base/check.h"
#include "base/strings.h"

namespace vllm::tokenizer {
namespace {

int Category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

struct ByteAlphabet {
  std::array<std::string, 256> spelling;
  std::array<int16_t, 0x144> byte = {};

  ByteAlphabet() {
    byte.fill(-1);
    char32_t next = 0x100;
    for (int value = 0; value < 256; ++value) {
      const bool printable =
          (value >= 0x21 && value <= 0x7E) || (value >= 0xA1 && value <= 0xAC) || (value >= 0xAE && value <= 0xFF);
      const char32_t c = printable ? static_cast<char32_t>(value) : next++;
      AppendChar(spelling[static_cast<size_t>(value)], c);
      byte[c] = static_cast<int16_t>(value);
    }
  }
};

const ByteAlphabet& Alphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

// Other_Alphabetic beyond marks: circled letters and the like, and Roman numerals are Nl.
bool IsOtherAlphabetic(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

}  // namespace

char32_t CharAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> char32_t { return static_cast<uint8_t>(text[at + i]); };
  switch (CharBytes(text[at])) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
}

size_t CharBefore(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

void AppendChar(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

size_t CountChars(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return count;
}

bool IsWhitespace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsNumeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const int category = Category(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool IsPunctuation(char32_t c) {
  if (c < 0x80) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  const int category = Category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool IsOther(char32_t c) {
  const int category = Category(c);
  return category == UTF8PROC_CATEGORY_CN || (category >= UTF8PROC_CATEGORY_CC && category <= UTF8PROC_CATEGORY_CO);
}

bool IsMark(char32_t c) {
  const int category = Category(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool IsNonspacingMark(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_MN; }

bool IsWord(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  const int category = Category(c);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC ||
         c == 0x200C || c == 0x200D || IsOtherAlphabetic(c);
}

bool IsChinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void AppendLower(std::string& out, char32_t c) {
  if (c == 0x130) {  // the only character whose lower-case form is two characters
    out += "i\xCC\x87";
    return;
  }
  AppendChar(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

std::string Normalized(std::string_view text, Form form) {
  bool ascii = true;
  for (const char c : text) ascii &= static_cast<uint8_t>(c) < 0x80;
  if (ascii) return std::string(text);
  int options = UTF8PROC_STABLE;
  options |= form == Form::kNfc || form == Form::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == Form::kNfkc || form == Form::kNfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &out, static_cast<utf8proc_option_t>(options));
  CHECK(size >= 0, "utf8proc: ", utf8proc_errmsg(size));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(out, &std::free);
  return std::string(reinterpret_cast<const char*>(out), static_cast<size_t>(size));
}

size_t GraphemeEnd(std::string_view text, size_t at) {
  utf8proc_int32_t state = 0;
  auto previous = static_cast<utf8proc_int32_t>(CharAt(text, at));
  at += CharBytes(text[at]);
  while (at < text.size()) {
    const auto next = static_cast<utf8proc_int32_t>(CharAt(text, at));
    if (utf8proc_grapheme_break_stateful(previous, next, &state)) break;
    previous = next;
    at += CharBytes(text[at]);
  }
  return at;
}

std::string_view ByteSpelling(uint8_t byte) { return Alphabet().spelling[byte]; }

int SpelledByte(char32_t c) { return c < 0x144 ? Alphabet().byte[c] : -1; }

bool AppendSpelledBytes(std::string& out, std::string_view spelling) {
  const size_t before = out.size();
  for (size_t at = 0; at < spelling.size(); at += CharBytes(spelling[at])) {
    const int byte = SpelledByte(CharAt(spelling, at));
    if (byte < 0) {
      out.resize(before);
      return false;
    }
    out += static_cast<char>(byte);
  }
  return true;
}

std::string ShownPath(std::string_view path) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : base::ReplaceInvalidUtf8(path)) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      out += c;
    } else {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

std::string Shown(std::string_view text) {
  constexpr size_t kShownBytes = 80;
  return ShownPath(text.substr(0, kShownBytes)) + (text.size() > kShownBytes ? "…" : "");
}

}  // namespace vllm::tokenizer
