// Python's repr for the few types that error messages quote.
#include "base/py_text.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "base/strings.h"

namespace base {
namespace {

std::string ReprOf(std::string_view text) {
  const bool double_quotes = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\x";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[c & 15];
    } else {
      out += c;
    }
  }
  return out += quote;
}

}  // namespace

std::string PyRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // Shortest digits; Python switches to exponents below 1e-4 and from 1e16.
  char scientific[40];
  const auto end = std::to_chars(scientific, scientific + sizeof scientific, value, std::chars_format::scientific).ptr;
  const std::string_view text(scientific, end - scientific);
  const size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + 1 + (text[e + 1] == '+'), text.data() + text.size(), exponent);
  if (value != 0 && (exponent < -4 || exponent >= 16)) return std::string(text);
  char fixed[400];
  std::string out(fixed, std::to_chars(fixed, fixed + sizeof fixed, value, std::chars_format::fixed).ptr - fixed);
  if (out.find('.') == out.npos) out += ".0";
  return out;
}

std::string PyRepr(std::span<const int32_t> values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) Append(i ? out += ", " : out, values[i]);
  return out += "]";
}

std::string PyRepr(std::span<const std::string> values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) (i ? out += ", " : out) += ReprOf(values[i]);
  return out += "]";
}

}  // namespace base
