// Text of numbers and strings as Python's repr() gives it, and back.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/template/format.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

void AppendHex(std::string& out, char32_t c, int digits) {
  constexpr char kHex[] = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHex[(c >> shift) & 0xF];
}

void AppendEscape(std::string& out, char32_t c) {
  if (c < 0x100) {
    out += "\\x";
    AppendHex(out, c, 2);
  } else if (c < 0x10000) {
    out += "\\u";
    AppendHex(out, c, 4);
  } else {
    out += "\\U";
    AppendHex(out, c, 8);
  }
}

// Drops the underscores that Python allows between digits; nothing when one stands elsewhere.
std::optional<std::string> PlainDigits(std::string_view text) {
  std::string out;
  bool previous_digit = false;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = DecodeUtf8(text, pos);
    if (c == '_') {
      if (!previous_digit || pos >= text.size()) return std::nullopt;
      size_t ahead = pos;
      const char32_t next = DecodeUtf8(text, ahead);
      if (DecimalValue(next) < 0 && !(next < 0x80 && IsAlpha(next))) return std::nullopt;
      previous_digit = false;
      continue;
    }
    const int digit = DecimalValue(c);
    if (digit >= 0) {
      out += static_cast<char>('0' + digit);
    } else {
      AppendUtf8(out, c);
    }
    previous_digit = digit >= 0 || (c < 0x80 && IsAlpha(c));
  }
  return out;
}

int DigitIn(char c, int base) {
  int digit = c >= '0' && c <= '9'   ? c - '0'
              : c >= 'a' && c <= 'z' ? c - 'a' + 10
              : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                     : 99;
  return digit < base ? digit : -1;
}

}  // namespace

std::string IntText(Int value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  auto rest = negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string out;
  for (; rest != 0; rest /= 10) out += static_cast<char>('0' + static_cast<int>(rest % 10));
  if (negative) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string out;
  if (text.front() == '-') {
    out += '-';
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(), exponent);
  std::string digits(1, text[0]);
  if (e > 2) digits += text.substr(2, e - 2);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out += "." + digits.substr(1);
    out += exponent < 0 ? "e-" : "e+";
    const std::string power = std::to_string(std::abs(exponent));
    return out + (power.size() < 2 ? "0" : "") + power;
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (exponent >= count - 1) return out + digits + std::string(static_cast<size_t>(exponent - count + 1), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<size_t>(exponent) + 1);
}

void AppendQuoted(std::string& out, std::string_view text) {
  const bool doubled = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = doubled ? '"' : '\'';
  out += quote;
  for (size_t pos = 0; pos < text.size();) {
    const size_t begin = pos;
    const char32_t c = DecodeUtf8(text, pos);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if ((c < 0x80 && c >= 0x20 && c != 0x7F) || (c >= 0x80 && IsPrintable(c))) {
      out += text.substr(begin, pos - begin);
    } else {
      AppendEscape(out, c);
    }
  }
  out += quote;
}

std::string AsciiRepr(std::string_view repr) {
  std::string out;
  for (size_t pos = 0; pos < repr.size();) {
    const char32_t c = DecodeUtf8(repr, pos);
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      AppendEscape(out, c);
    }
  }
  return out;
}

std::optional<Int> ParseInt(std::string_view text, int base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  const auto plain = PlainDigits(StripSpace(text, Side::kBoth));
  if (!plain) return std::nullopt;
  std::string_view rest = *plain;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '+' || rest[0] == '-')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  if (rest.size() > 2 && rest[0] == '0') {
    const char kind = static_cast<char>(rest[1] | 0x20);
    const int prefixed = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (prefixed != 0 && (base == 0 || base == prefixed)) {
      base = prefixed;
      rest.remove_prefix(2);
    }
  }
  if (base == 0) {
    if (rest.size() > 1 && rest[0] == '0' && rest.find_first_not_of('0') != std::string_view::npos) return std::nullopt;
    base = 10;
  }
  if (rest.empty()) return std::nullopt;
  Int value = 0;
  for (const char c : rest) {
    const int digit = DigitIn(c, base);
    if (digit < 0) return std::nullopt;
    if (__builtin_mul_overflow(value, Int{base}, &value) || __builtin_add_overflow(value, Int{digit}, &value)) {
      Fail("integer overflow: '", rest.substr(0, 50), "' does not fit in 128 bits");
    }
  }
  return negative ? -value : value;
}

std::optional<double> ParseFloat(std::string_view text) {
  auto plain = PlainDigits(StripSpace(text, Side::kBoth));
  if (!plain || plain->empty()) return std::nullopt;
  std::string_view rest = *plain;
  bool negative = false;
  if (rest[0] == '+' || rest[0] == '-') {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  // from_chars takes "inf" and "nan" too, in any case; "nan(...)" is its own.
  if (rest.empty() || rest[0] == '+' || rest[0] == '-' || rest.find('(') != std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (end != rest.data() + rest.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    value = std::strtod(std::string(rest).c_str(), nullptr);
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace vllm::jinja
