// Python's format mini-language and % formatting.
#include "text/template/format.h"

#include <charconv>
#include <cmath>

#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

struct Spec {
  std::string fill = " ";
  char align = 0;
  char sign = '-';
  bool sign_given = false;
  bool alternate = false;
  bool zero = false;
  int64_t width = 0;
  char grouping = 0;
  int64_t precision = -1;
  char type = 0;
};

int64_t TakeNumber(std::string_view text, size_t& pos) {
  int64_t value = 0;
  while (pos < text.size() && text[pos] >= '0' && text[pos] <= '9') {
    value = value * 10 + (text[pos++] - '0');
    if (value > INT32_MAX) Fail("Too many decimal digits in format string");
  }
  return value;
}

bool IsAlign(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

Spec ParseSpec(std::string_view text) {
  Spec spec;
  size_t pos = 0;
  const size_t first = text.empty() ? 0 : SequenceLength(text, 0);
  if (first < text.size() && IsAlign(text[first])) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    pos = first + 1;
  } else if (!text.empty() && IsAlign(text[0])) {
    spec.align = text[pos++];
  }
  const auto at = [&](char c) { return pos < text.size() && text[pos] == c; };
  if (at('+') || at('-') || at(' ')) {
    spec.sign = text[pos++];
    spec.sign_given = true;
  }
  if (at('#')) spec.alternate = true, ++pos;
  if (at('0')) {
    spec.zero = true;
    if (spec.align == 0) spec.fill = "0", spec.align = '=';
    ++pos;
  }
  spec.width = TakeNumber(text, pos);
  if (at(',') || at('_')) spec.grouping = text[pos++];
  if (at('.')) {
    const size_t begin = ++pos;
    spec.precision = TakeNumber(text, pos);
    if (pos == begin) Fail("Format specifier missing precision");
  }
  if (pos < text.size()) spec.type = text[pos++];
  if (pos < text.size()) Fail("Invalid format specifier '", text, "'");
  return spec;
}

void Repeat(Budget& budget, std::string& out, std::string_view what, int64_t count) {
  if (count <= 0) return;
  budget.String(static_cast<int64_t>(out.size()) + count * static_cast<int64_t>(what.size()));
  for (int64_t i = 0; i < count; ++i) out += what;
}

std::string Pad(Budget& budget, const std::string& text, const std::string& fill, char align, int64_t width) {
  const int64_t missing = width - CountCodePoints(text);
  if (missing <= 0) return text;
  const int64_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  std::string out;
  Repeat(budget, out, fill, left);
  out += text;
  Repeat(budget, out, fill, missing - left);
  return out;
}

std::string Group(std::string_view digits, char separator, size_t every) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % every == 0) out += separator;
    out += digits[i];
  }
  return out;
}

// Sign and prefix, digits (with what follows them), and the padding between or around.
std::string Assemble(Budget& budget, const Spec& spec, bool negative, const std::string& prefix, std::string digits,
                     const std::string& tail, size_t group_every) {
  std::string head = negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
  head += prefix;
  const char align = spec.align == 0 ? '>' : spec.align;
  const int64_t room = spec.width - static_cast<int64_t>(head.size() + tail.size());
  if (spec.grouping != 0) {
    std::string grouped = Group(digits, spec.grouping, group_every);
    if (align == '=' && spec.fill == "0") {
      if (room > 0) budget.String(room);
      while (static_cast<int64_t>(grouped.size()) < room) {
        const int64_t missing = room - static_cast<int64_t>(grouped.size());
        digits.insert(0, static_cast<size_t>(std::max<int64_t>(1, missing * 3 / 4)), '0');
        grouped = Group(digits, spec.grouping, group_every);
      }
    }
    digits = std::move(grouped);
  }
  if (align == '=') {
    std::string padding;
    Repeat(budget, padding, spec.fill, room - static_cast<int64_t>(digits.size()));
    return head + padding + digits + tail;
  }
  return Pad(budget, head + digits + tail, spec.fill, align, spec.width);
}

std::string InBase(Int value, unsigned base, bool upper) {
  const std::string_view digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  auto rest = value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string out;
  do {
    out.insert(out.begin(), digits[static_cast<size_t>(rest % base)]);
    rest /= base;
  } while (rest != 0);
  return out;
}

std::string ToChars(Budget& budget, double value, std::chars_format format, int64_t precision) {
  budget.String(precision + 400);
  std::string out(static_cast<size_t>(precision) + 400, '\0');
  const auto [end, error] =
      std::to_chars(out.data(), out.data() + out.size(), value, format, static_cast<int>(precision));
  out.resize(static_cast<size_t>(end - out.data()));
  return out;
}

// %g, and with `keep_point` the variant that a type-less format uses: at least one digit behind the point.
std::string General(Budget& budget, double value, int64_t precision, bool alternate, bool keep_point) {
  if (precision == 0) precision = 1;
  const std::string text = ToChars(budget, value, std::chars_format::scientific, precision - 1);
  const size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  std::string digits = text.substr(0, 1) + (e > 2 ? text.substr(2, e - 2) : "");
  if (!alternate) {
    while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  }
  if (exponent < -4 || exponent + 1 > precision - (keep_point ? 1 : 0)) {
    const std::string rest = digits.substr(1);
    return digits.substr(0, 1) + (rest.empty() ? (alternate ? "." : "") : "." + rest) + text.substr(e);
  }
  if (exponent < 0) return "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  const std::string rest = digits.substr(whole);
  if (rest.empty()) return digits + (keep_point ? ".0" : alternate ? "." : "");
  return digits.substr(0, whole) + "." + rest;
}

std::string FloatBody(Budget& budget, double magnitude, char type, int64_t precision, bool alternate) {
  const char lower = static_cast<char>(type | 0x20);
  std::string body;
  if (std::isnan(magnitude)) {
    body = "nan";
  } else if (std::isinf(magnitude)) {
    body = "inf";
  } else if (type == 0 && precision < 0) {
    body = FloatText(magnitude);
  } else if (type == 0) {
    body = General(budget, magnitude, precision, alternate, true);
  } else if (lower == 'g' || lower == 'n') {
    body = General(budget, magnitude, precision < 0 ? 6 : precision, alternate, false);
  } else {
    const int64_t digits = precision < 0 ? 6 : precision;
    body = ToChars(budget, type == '%' ? magnitude * 100 : magnitude,
                   lower == 'e' ? std::chars_format::scientific : std::chars_format::fixed, digits);
    if (alternate && digits == 0) body.insert(std::min(body.find('e'), body.size()), ".");
  }
  if (type >= 'A' && type <= 'Z') {
    for (char& c : body) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  }
  if (type == '%') body += '%';
  return body;
}

std::string FormatFloat(Budget& budget, const Spec& spec, double value) {
  std::string body = FloatBody(budget, std::fabs(value), spec.type, spec.precision, spec.alternate);
  const size_t whole = std::min(body.find_first_not_of("0123456789"), body.size());
  const std::string tail = body.substr(whole);
  const bool negative = std::signbit(value) && !std::isnan(value);
  if (whole == 0) {  // inf and nan are not grouped
    Spec plain = spec;
    plain.grouping = 0;
    return Assemble(budget, plain, negative, "", tail, "", 3);
  }
  return Assemble(budget, spec, negative, "", body.substr(0, whole), tail, 3);
}

[[noreturn]] void UnknownCode(char type, const Value& value) {
  Fail("Unknown format code '", std::string(1, type), "' for object of type '", TypeName(value), "'");
}

std::string FormatInt(Budget& budget, Spec spec, const Value& value) {
  const Int number = value.integer();
  std::string prefix;
  unsigned base = 10;
  switch (spec.type) {
    case 0:
    case 'd':
    case 'n':
      break;
    case 'b':
      base = 2, prefix = "0b";
      break;
    case 'o':
      base = 8, prefix = "0o";
      break;
    case 'x':
      base = 16, prefix = "0x";
      break;
    case 'X':
      base = 16, prefix = "0X";
      break;
    case 'c': {
      if (number < 0 || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000))
        Fail("%c arg not in range(0x110000)");
      std::string text;
      AppendUtf8(text, static_cast<char32_t>(number));
      return Pad(budget, text, spec.fill, spec.align == 0 || spec.align == '=' ? '<' : spec.align, spec.width);
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case '%':
      return FormatFloat(budget, spec, static_cast<double>(number));
    default:
      UnknownCode(spec.type, value);
  }
  if (spec.precision >= 0) Fail("Precision not allowed in integer format specifier");
  if (!spec.alternate) prefix.clear();
  return Assemble(budget, spec, number < 0, prefix, InBase(number, base, spec.type == 'X'), "", base == 10 ? 3 : 4);
}

// ---- % formatting ----

struct Percent {
  bool left = false, plus = false, space = false, alternate = false, zero = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

class PercentFormatter {
 public:
  PercentFormatter(Budget& budget, std::string_view text, const Value& values)
      : budget_(budget), text_(text), values_(values) {}
  std::string Run();

 private:
  const Value& NextValue();
  int64_t NumberOrStar();
  void Flags(Percent& spec);
  std::string Convert(const Percent& spec, const Value& value);
  std::string Number(const Percent& spec, const Value& value);
  Budget& budget_;
  std::string_view text_;
  const Value& values_;
  size_t pos_ = 0;
  size_t used_ = 0;
};

const Value& PercentFormatter::NextValue() {
  if (!values_.is_tuple()) {
    if (used_++ > 0) Fail("not enough arguments for format string");
    return values_;
  }
  if (used_ >= values_.items().size()) Fail("not enough arguments for format string");
  return values_.items()[used_++];
}

int64_t PercentFormatter::NumberOrStar() {
  if (pos_ < text_.size() && text_[pos_] == '*') {
    ++pos_;
    const Value& value = NextValue();
    if (!value.is_integral()) Fail("* wants int");
    const Int number = value.integer();
    if (number > INT32_MAX || number < -INT32_MAX) Fail("width too big");
    return static_cast<int64_t>(number);
  }
  return TakeNumber(text_, pos_);
}

void PercentFormatter::Flags(Percent& spec) {
  for (; pos_ < text_.size(); ++pos_) {
    switch (text_[pos_]) {
      case '-':
        spec.left = true;
        continue;
      case '+':
        spec.plus = true;
        continue;
      case ' ':
        spec.space = true;
        continue;
      case '#':
        spec.alternate = true;
        continue;
      case '0':
        spec.zero = true;
        continue;
      default:
        break;
    }
    break;
  }
  spec.width = NumberOrStar();
  if (spec.width < 0) spec.left = true, spec.width = -spec.width;
  if (pos_ < text_.size() && text_[pos_] == '.') {
    ++pos_;
    spec.precision = std::max<int64_t>(0, NumberOrStar());
  }
  if (pos_ < text_.size() && (text_[pos_] == 'h' || text_[pos_] == 'l' || text_[pos_] == 'L')) ++pos_;
  if (pos_ >= text_.size()) Fail("incomplete format");
  spec.type = text_[pos_++];
}

std::string PercentFormatter::Number(const Percent& spec, const Value& value) {
  Spec format;
  format.sign = spec.plus ? '+' : spec.space ? ' ' : '-';
  format.alternate = spec.alternate;
  format.width = spec.width;
  format.align = spec.left ? '<' : spec.zero ? '=' : '>';
  if (spec.zero && !spec.left) format.fill = "0";
  if (std::string_view("eEfFgG").find(spec.type) != std::string_view::npos) {
    if (!value.is_number()) Fail("must be real number, not ", TypeName(value));
    format.type = spec.type;
    format.precision = spec.precision < 0 ? 6 : spec.precision;
    return FormatFloat(budget_, format, value.number());
  }
  const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
  Int number = 0;
  if (value.is_integral()) {
    number = value.integer();
  } else if (decimal && value.is_float()) {
    if (!(std::fabs(value.number()) < 1e38)) Fail("cannot convert float ", FloatText(value.number()), " to integer");
    number = static_cast<Int>(value.number());
  } else {
    Fail("%", std::string(1, spec.type), " format: ", decimal ? "a real number" : "an integer", " is required, not ",
         TypeName(value));
  }
  const unsigned base = decimal ? 10 : spec.type == 'o' ? 8 : 16;
  const std::string prefix = !spec.alternate || decimal ? "" : spec.type == 'o' ? "0o" : spec.type == 'x' ? "0x" : "0X";
  std::string digits = InBase(number, base, spec.type == 'X');
  if (spec.precision > static_cast<int64_t>(digits.size())) {
    budget_.String(spec.precision);
    digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
  }
  return Assemble(budget_, format, number < 0, prefix, digits, "", 3);
}

std::string PercentFormatter::Convert(const Percent& spec, const Value& value) {
  std::string text;
  switch (spec.type) {
    case 's':
      text = ToStr(budget_, value);
      break;
    case 'r':
      text = ToRepr(budget_, value);
      break;
    case 'a':
      text = AsciiRepr(ToRepr(budget_, value));
      break;
    case 'c':
      if (value.is_string() && value.str().length == 1) {
        text = value.text();
      } else if (value.is_integral()) {
        Spec format;
        format.type = 'c';
        text = FormatInt(budget_, format, value);
      } else {
        Fail("%c requires int or char");
      }
      break;
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      return Number(spec, value);
    default:
      Fail("unsupported format character '", std::string(1, spec.type), "'");
  }
  if (spec.precision >= 0 && spec.type != 'c') text.resize(ByteOffset(text, spec.precision));
  return Pad(budget_, text, " ", spec.left ? '<' : '>', spec.width);
}

std::string PercentFormatter::Run() {
  std::string out;
  bool keyed = false;
  while (pos_ < text_.size()) {
    const size_t percent = std::min(text_.find('%', pos_), text_.size());
    out += text_.substr(pos_, percent - pos_);
    pos_ = percent + 1;
    if (percent == text_.size()) break;
    if (pos_ >= text_.size()) Fail("incomplete format");
    Percent spec;
    const Value* value = nullptr;
    if (text_[pos_] == '(') {
      if (!values_.is_dict()) Fail("format requires a mapping");
      size_t end = pos_ + 1;
      for (int depth = 1; end < text_.size() && depth > 0; ++end)
        depth += text_[end] == '(' ? 1 : text_[end] == ')' ? -1 : 0;
      if (text_[end - 1] != ')' || end - 1 == pos_) Fail("incomplete format key");
      const std::string_view key = text_.substr(pos_ + 1, end - pos_ - 2);
      value = values_.dict().Find(key);
      if (value == nullptr) Fail("KeyError: '", key, "'");
      keyed = true;
      pos_ = end;
    }
    Flags(spec);
    if (spec.type == '%') {
      out += '%';
      continue;
    }
    out += Convert(spec, value != nullptr ? *value : NextValue());
    budget_.CheckString(static_cast<int64_t>(out.size()));
    budget_.Step();
  }
  const bool mapping = values_.is_dict() || values_.is_list() || values_.is_undefined();
  const bool left_over = values_.is_tuple() ? used_ < values_.items().size() : used_ == 0 && !mapping;
  if (left_over && !keyed) Fail("not all arguments converted during string formatting");
  return out;
}

}  // namespace

std::string FormatValue(Budget& budget, const Value& value, std::string_view text) {
  if (text.empty()) return ToStr(budget, value);
  if (!value.is_number() && !value.is_string()) {
    Fail("unsupported format string passed to ", TypeName(value), ".__format__");
  }
  const Spec spec = ParseSpec(text);
  if (value.is_integral()) {
    // A bool with a width but no type is formatted as an int.
    return FormatInt(budget, spec, value);
  }
  if (value.is_float()) {
    if (spec.type != 0 && std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos)
      UnknownCode(spec.type, value);
    return FormatFloat(budget, spec, value.number());
  }
  if (spec.type != 0 && spec.type != 's') UnknownCode(spec.type, value);
  if (spec.sign_given) Fail("Sign not allowed in string format specifier");
  if (spec.alternate) Fail("Alternate form (#) not allowed in string format specifier");
  if (spec.align == '=' && !spec.zero) Fail("'=' alignment not allowed in string format specifier");
  if (spec.grouping != 0) Fail("Cannot specify '", std::string(1, spec.grouping), "' with 's'.");
  std::string body = value.text();
  if (spec.precision >= 0) body.resize(ByteOffset(body, spec.precision));
  return Pad(budget, body, spec.fill, spec.align == 0 || spec.align == '=' ? '<' : spec.align, spec.width);
}

std::string PercentFormat(Budget& budget, const Str& text, const Value& values) {
  return PercentFormatter(budget, text.text, values).Run();
}

}  // namespace vllm::jinja
