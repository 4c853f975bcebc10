// Python's str over UTF-8; character data comes from utf8proc, completed by unicode_tables.
#include "text/template/pystring.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>

#include "text/template/unicode_tables.h"

namespace vllm::jinja {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

bool InRanges(std::span<const CodeRange> ranges, char32_t c) {
  auto it =
      std::upper_bound(ranges.begin(), ranges.end(), c, [](char32_t x, const CodeRange& r) { return x < r.first; });
  return it != ranges.begin() && c <= std::prev(it)->last;
}

const SpecialCase* FindSpecial(std::span<const SpecialCase> table, char32_t c) {
  auto it = std::lower_bound(table.begin(), table.end(), c,
                             [](const SpecialCase& s, char32_t x) { return s.code_point < x; });
  return it != table.end() && it->code_point == c ? &*it : nullptr;
}

utf8proc_category_t Category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

void AppendMapped(std::string& out, char32_t c, std::span<const SpecialCase> table,
                  utf8proc_int32_t (*simple)(utf8proc_int32_t)) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    return;
  }
  if (const SpecialCase* special = FindSpecial(table, c)) {
    for (char32_t to : special->to) {
      if (to != 0) AppendUtf8(out, to);
    }
    return;
  }
  AppendUtf8(out, static_cast<char32_t>(simple(static_cast<utf8proc_int32_t>(c))));
}

void AppendUpper(std::string& out, char32_t c) { AppendMapped(out, c, SpecialUpper(), utf8proc_toupper); }
void AppendTitle(std::string& out, char32_t c) { AppendMapped(out, c, SpecialTitle(), utf8proc_totitle); }

bool IsCaseIgnorable(char32_t c) {
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  constexpr char32_t kPunctuation[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                       0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  return std::find(std::begin(kPunctuation), std::end(kPunctuation), c) != std::end(kPunctuation);
}

// Greek sigma is final when a cased letter stands before it and none after it, case-ignorable characters skipped.
bool IsFinalSigma(std::string_view text, size_t begin, size_t end) {
  size_t at = begin;
  bool before = false;
  while (at > 0) {
    do --at;
    while (at > 0 && IsContinuation(text[at]));
    size_t pos = at;
    const char32_t c = DecodeUtf8(text, pos);
    if (IsCaseIgnorable(c)) continue;
    before = IsCased(c);
    break;
  }
  if (!before) return false;
  while (end < text.size()) {
    const char32_t c = DecodeUtf8(text, end);
    if (!IsCaseIgnorable(c)) return !IsCased(c);
  }
  return true;
}

void AppendLower(std::string& out, std::string_view text, size_t begin, size_t end, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (c == 0x130) {
    out += "i\xCC\x87";
  } else if (c == 0x3A3) {
    AppendUtf8(out, IsFinalSigma(text, begin, end) ? 0x3C2 : 0x3C3);
  } else {
    AppendUtf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

template <class F>
std::string Map(std::string_view text, F append) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const size_t begin = pos;
    const char32_t c = DecodeUtf8(text, pos);
    append(out, begin, pos, c);
  }
  return out;
}

bool IsLineBreak(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

// The start of the code point that ends before `end`.
size_t Previous(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && IsContinuation(text[at])) --at;
  return at;
}

template <class In>
std::string_view Strip(std::string_view text, Side side, In in) {
  size_t begin = 0, end = text.size();
  if (side != Side::kRight) {
    while (begin < end) {
      size_t pos = begin;
      if (!in(DecodeUtf8(text, pos))) break;
      begin = pos;
    }
  }
  if (side != Side::kLeft) {
    while (end > begin) {
      const size_t at = Previous(text, end);
      size_t pos = at;
      if (!in(DecodeUtf8(text, pos))) break;
      end = at;
    }
  }
  return text.substr(begin, end - begin);
}

}  // namespace

char32_t DecodeUtf8(std::string_view text, size_t& pos) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(pos);
  const size_t length = SequenceLength(text, pos);
  if (length == 1) {
    ++pos;
    return lead;
  }
  char32_t c = lead & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) c = (c << 6) | (byte(pos + i) & 0x3F);
  pos += length;
  return c;
}

size_t SequenceLength(std::string_view text, size_t pos) {
  const unsigned char lead = static_cast<unsigned char>(text[pos]);
  const size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF8 ? 4 : 1;
  return pos + length <= text.size() ? length : 1;
}

void AppendUtf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

int64_t CountCodePoints(std::string_view text) {
  int64_t count = 0;
  for (const char c : text) count += !IsContinuation(c);
  return count;
}

size_t ByteOffset(std::string_view text, int64_t index) {
  size_t pos = 0;
  while (index > 0 && pos < text.size()) {
    pos += SequenceLength(text, pos);
    --index;
  }
  return pos;
}

bool IsSpace(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsAlpha(char32_t c) {
  const auto category = Category(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsDecimal(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_ND; }
bool IsDigit(char32_t c) { return IsDecimal(c) || InRanges(DigitRanges(), c); }
bool IsNumeric(char32_t c) { return IsDigit(c) || InRanges(NumericRanges(), c); }
bool IsAlnum(char32_t c) { return IsAlpha(c) || IsNumeric(c); }
bool IsUpper(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_LU || InRanges(OtherUppercase(), c); }
bool IsLower(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_LL || InRanges(OtherLowercase(), c); }
bool IsTitle(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_LT; }
bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c) || IsTitle(c); }

bool IsPrintable(char32_t c) {
  if (c == ' ') return true;
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool IsIdentifierStart(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return IsAlpha(c) || Category(c) == UTF8PROC_CATEGORY_NL;
}

bool IsIdentifierPart(char32_t c) {
  if (c < 0x80) return IsIdentifierStart(c) || (c >= '0' && c <= '9');
  if (IsIdentifierStart(c)) return true;
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return c == 0xB7;
  }
}

int DecimalValue(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9' ? static_cast<int>(c - '0') : -1;
  if (!IsDecimal(c)) return -1;
  // Decimal digits come in runs of ten; the run starts where the character before it is no decimal of the same run.
  char32_t zero = c;
  while (zero > 0 && c - zero < 9 && IsDecimal(zero - 1)) --zero;
  // Runs that touch (mathematical digits) have zeros ten apart from the first of the block.
  if (c >= 0x1D7CE && c <= 0x1D7FF) return static_cast<int>((c - 0x1D7CE) % 10);
  return static_cast<int>(c - zero);
}

std::string ToUpper(std::string_view text) {
  return Map(text, [](std::string& out, size_t, size_t, char32_t c) { AppendUpper(out, c); });
}

std::string ToLower(std::string_view text) {
  return Map(text,
             [&](std::string& out, size_t begin, size_t end, char32_t c) { AppendLower(out, text, begin, end, c); });
}

std::string ToTitle(std::string_view text) {
  bool in_word = false;
  return Map(text, [&](std::string& out, size_t begin, size_t end, char32_t c) {
    if (in_word) {
      AppendLower(out, text, begin, end, c);
    } else {
      AppendTitle(out, c);
    }
    in_word = IsCased(c);
  });
}

std::string Capitalize(std::string_view text) {
  return Map(text, [&](std::string& out, size_t begin, size_t end, char32_t c) {
    if (begin == 0) {
      AppendTitle(out, c);
    } else {
      AppendLower(out, text, begin, end, c);
    }
  });
}

std::string SwapCase(std::string_view text) {
  return Map(text, [&](std::string& out, size_t begin, size_t end, char32_t c) {
    if (IsUpper(c)) {
      AppendLower(out, text, begin, end, c);
    } else if (IsLower(c)) {
      AppendUpper(out, c);
    } else {
      AppendUtf8(out, c);
    }
  });
}

std::string CaseFold(std::string_view text) {
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = DecodeUtf8(text, pos);
    utf8proc_int32_t folded[8];
    int last_class = 0;
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded, 8, UTF8PROC_CASEFOLD, &last_class);
    for (utf8proc_ssize_t i = 0; i < std::min<utf8proc_ssize_t>(count, 8); ++i)
      AppendUtf8(out, static_cast<char32_t>(folded[i]));
  }
  return out;
}

bool AllIn(std::string_view text, bool (*in_class)(char32_t)) {
  if (text.empty()) return false;
  for (size_t pos = 0; pos < text.size();) {
    if (!in_class(DecodeUtf8(text, pos))) return false;
  }
  return true;
}

bool StrIsUpper(std::string_view text) {
  bool cased = false;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = DecodeUtf8(text, pos);
    if (IsLower(c) || IsTitle(c)) return false;
    cased = cased || IsUpper(c);
  }
  return cased;
}

bool StrIsLower(std::string_view text) {
  bool cased = false;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = DecodeUtf8(text, pos);
    if (IsUpper(c) || IsTitle(c)) return false;
    cased = cased || IsLower(c);
  }
  return cased;
}

bool StrIsTitle(std::string_view text) {
  bool cased = false, previous = false;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = DecodeUtf8(text, pos);
    if (IsUpper(c) || IsTitle(c)) {
      if (previous) return false;
      previous = cased = true;
    } else if (IsLower(c)) {
      if (!previous) return false;
      cased = true;
    } else {
      previous = false;
    }
  }
  return cased;
}

std::string_view StripSpace(std::string_view text, Side side) { return Strip(text, side, IsSpace); }

std::string_view StripChars(std::string_view text, std::string_view chars, Side side) {
  std::vector<char32_t> set;
  for (size_t pos = 0; pos < chars.size();) set.push_back(DecodeUtf8(chars, pos));
  std::sort(set.begin(), set.end());
  return Strip(text, side, [&](char32_t c) { return std::binary_search(set.begin(), set.end(), c); });
}

std::vector<std::string_view> SplitOn(std::string_view text, std::string_view separator, int64_t max) {
  std::vector<std::string_view> parts;
  while (max != 0) {
    const size_t at = FindText(text, separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
    if (max > 0) --max;
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> SplitOnFromRight(std::string_view text, std::string_view separator, int64_t max) {
  std::vector<std::string_view> parts;
  while (max != 0) {
    const size_t at = text.rfind(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
    if (max > 0) --max;
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> SplitSpace(std::string_view text, int64_t max) {
  std::vector<std::string_view> parts;
  while (true) {
    text = StripSpace(text, Side::kLeft);
    if (text.empty()) return parts;
    if (max == 0) {
      parts.push_back(text);
      return parts;
    }
    size_t end = 0;
    while (end < text.size()) {
      size_t pos = end;
      if (IsSpace(DecodeUtf8(text, pos))) break;
      end = pos;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
    if (max > 0) --max;
  }
}

std::vector<std::string_view> SplitSpaceFromRight(std::string_view text, int64_t max) {
  std::vector<std::string_view> parts;
  while (true) {
    text = StripSpace(text, Side::kRight);
    if (text.empty()) break;
    if (max == 0) {
      parts.push_back(text);
      break;
    }
    size_t begin = text.size();
    while (begin > 0) {
      const size_t at = Previous(text, begin);
      size_t pos = at;
      if (IsSpace(DecodeUtf8(text, pos))) break;
      begin = at;
    }
    parts.push_back(text.substr(begin));
    text = text.substr(0, begin);
    if (max > 0) --max;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t at = pos;
    const char32_t c = DecodeUtf8(text, pos);
    if (!IsLineBreak(c)) continue;
    if (c == '\r' && pos < text.size() && text[pos] == '\n') ++pos;
    lines.push_back(text.substr(begin, (keep_ends ? pos : at) - begin));
    begin = pos;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

size_t FindText(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? std::string_view::npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

int64_t CountOf(std::string_view text, std::string_view part) {
  if (part.empty()) return CountCodePoints(text) + 1;
  int64_t count = 0;
  for (size_t at = 0; (at = FindText(text, part, at)) != std::string_view::npos; at += part.size()) ++count;
  return count;
}

int64_t ReplacedSize(std::string_view text, std::string_view old, std::string_view with, int64_t count) {
  int64_t found = CountOf(text, old);
  if (count >= 0) found = std::min(found, count);
  return static_cast<int64_t>(text.size()) +
         found * (static_cast<int64_t>(with.size()) - static_cast<int64_t>(old.size()));
}

std::string ReplaceAll(std::string_view text, std::string_view old, std::string_view with, int64_t count) {
  std::string out;
  size_t pos = 0;
  if (old.empty()) {  // between all characters
    while (count != 0 && pos < text.size()) {
      out += with;
      const size_t length = SequenceLength(text, pos);
      out += text.substr(pos, length);
      pos += length;
      if (count > 0) --count;
    }
    if (count != 0 && pos >= text.size()) return out += with;
    return out += text.substr(pos);
  }
  while (count != 0) {
    const size_t at = FindText(text, old, pos);
    if (at == std::string_view::npos) break;
    out += text.substr(pos, at - pos);
    out += with;
    pos = at + old.size();
    if (count > 0) --count;
  }
  return out += text.substr(pos);
}

std::string EscapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace vllm::jinja
