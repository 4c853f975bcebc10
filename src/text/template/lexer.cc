// The tokens of a template; the rules for whitespace around tags are those of jinja2's lexer.
#include "text/template/lexer.h"

#include <algorithm>

#include "text/template/format.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

bool IsDigitChar(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) { return IsDigitChar(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

// Line ends become \n; one at the end of the template is dropped.
std::string Normalize(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(Normalize(source)) {}
  std::vector<Token> Run();

 private:
  template <class... Parts>
  [[noreturn]] void Error(const Parts&... parts) const {
    Fail("line ", line_, ": ", parts...);
  }
  std::string_view Rest() const { return std::string_view(source_).substr(pos_); }
  bool At(std::string_view text) const { return Rest().starts_with(text); }
  void Advance(size_t count) {
    line_ += static_cast<int>(
        std::count(source_.begin() + static_cast<long>(pos_), source_.begin() + static_cast<long>(pos_ + count), '\n'));
    pos_ += count;
    line_starting_ = pos_ > 0 && source_[pos_ - 1] == '\n';
  }
  size_t SkipSpace(size_t at) const {
    while (at < source_.size()) {
      size_t next = at;
      if (!IsSpace(DecodeUtf8(source_, next))) break;
      at = next;
    }
    return at;
  }
  void Add(TokenKind kind, std::string text = {}, Value value = {}) {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::move(text), .value = std::move(value)});
  }
  std::string Decode(std::string_view body) const;
  char32_t Escape(std::string_view text, size_t& pos) const;

  void Root();
  void Data(size_t end, char sign, bool variable);
  bool TryRaw(size_t tag);
  void Raw();
  void Comment();
  void Tag(bool block);
  bool TagEnd(bool block);
  void Operator();
  bool Number();
  void Name();
  void String();

  std::string source_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
  std::string open_;  // the closing brackets that are awaited
};

// Emits source_[pos_, end) as data, with the whitespace before a tag removed as its sign or lstrip_blocks asks.
void Lexer::Data(size_t end, char sign, bool variable) {
  std::string_view text = std::string_view(source_).substr(pos_, end - pos_);
  if (sign == '-') {
    text = StripSpace(text, Side::kRight);
  } else if (sign != '+' && !variable) {
    const size_t newline = text.rfind('\n');
    const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    if ((line_begin > 0 || line_starting_) && SkipSpace(pos_ + line_begin) >= end) text = text.substr(0, line_begin);
  }
  if (!text.empty()) Add(TokenKind::kData, std::string(text));
  Advance(end - pos_);
}

// {% raw %}: true when the tag at `tag` is one; the position is then behind it.
bool Lexer::TryRaw(size_t tag) {
  const std::string_view text = source_;
  size_t at = tag + 2;
  char sign = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) sign = text[at++];
  at = SkipSpace(at);
  if (!text.substr(at).starts_with("raw")) return false;
  at = SkipSpace(at + 3);
  size_t end = 0;
  if (text.substr(at).starts_with("-%}")) {
    end = SkipSpace(at + 3);
  } else if (text.substr(at).starts_with("%}")) {
    end = at + 2;
  } else {
    return false;
  }
  Data(tag, sign, false);
  Advance(end - pos_);
  Raw();
  return true;
}

void Lexer::Raw() {
  const std::string_view text = source_;
  for (size_t tag = pos_; (tag = text.find("{%", tag)) != std::string_view::npos; ++tag) {
    size_t at = tag + 2;
    char sign = 0;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) sign = text[at++];
    at = SkipSpace(at);
    if (!text.substr(at).starts_with("endraw")) continue;
    at = SkipSpace(at + 6);
    size_t end = 0;
    if (text.substr(at).starts_with("+%}")) {
      end = at + 3;
    } else if (text.substr(at).starts_with("-%}")) {
      end = SkipSpace(at + 3);
    } else if (text.substr(at).starts_with("%}")) {
      end = at + 2;
      if (end < text.size() && text[end] == '\n') ++end;
    } else {
      continue;
    }
    Data(tag, sign, false);
    Advance(end - pos_);
    return;
  }
  Error("Missing end of raw directive");
}

void Lexer::Comment() {
  const std::string_view text = source_;
  const size_t end = text.find("#}", pos_);
  if (end == std::string_view::npos) Error("Missing end of comment tag");
  size_t behind = end + 2;
  const char sign = end > pos_ ? text[end - 1] : 0;
  if (sign == '-') {
    behind = SkipSpace(behind);
  } else if (sign != '+' && behind < text.size() && text[behind] == '\n') {
    ++behind;
  }
  Advance(behind - pos_);
}

void Lexer::Root() {
  const std::string_view text = source_;
  size_t tag = pos_;
  while ((tag = text.find('{', tag)) != std::string_view::npos) {
    if (tag + 1 < text.size() && (text[tag + 1] == '%' || text[tag + 1] == '{' || text[tag + 1] == '#')) break;
    ++tag;
  }
  if (tag == std::string_view::npos) {
    if (pos_ < text.size()) Add(TokenKind::kData, std::string(Rest()));
    Advance(text.size() - pos_);
    return;
  }
  const char kind = text[tag + 1];
  if (kind == '%' && TryRaw(tag)) return;
  const char next = tag + 2 < text.size() ? text[tag + 2] : 0;
  const char sign = next == '-' || next == '+' ? next : 0;
  Data(tag, sign, kind == '{');
  const size_t length = sign == 0 ? 2 : 3;
  if (kind == '#') {
    Advance(length);
    Comment();
    return;
  }
  Add(kind == '%' ? TokenKind::kBlockBegin : TokenKind::kVariableBegin);
  Advance(length);
  Tag(kind == '%');
}

bool Lexer::TagEnd(bool block) {
  size_t end = 0;
  if (block) {
    if (At("+%}")) {
      end = pos_ + 3;
    } else if (At("-%}")) {
      end = SkipSpace(pos_ + 3);
    } else if (At("%}")) {
      end = pos_ + 2;
      if (end < source_.size() && source_[end] == '\n') ++end;
    }
  } else if (At("-}}")) {
    end = SkipSpace(pos_ + 3);
  } else if (At("}}")) {
    end = pos_ + 2;
  }
  if (end == 0) return false;
  Add(block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd);
  Advance(end - pos_);
  return true;
}

void Lexer::Tag(bool block) {
  open_.clear();
  while (true) {
    if (open_.empty() && TagEnd(block)) return;
    if (pos_ >= source_.size()) return;
    const size_t after_space = SkipSpace(pos_);
    if (after_space > pos_) {
      Advance(after_space - pos_);
      continue;
    }
    size_t next = pos_;
    const char32_t c = DecodeUtf8(source_, next);
    if (IsDigitChar(source_[pos_])) {
      if (!Number()) Error("unexpected char '", source_[pos_], "'");
    } else if (IsIdentifierPart(c)) {
      Name();
    } else if (c == '\'' || c == '"') {
      String();
    } else {
      Operator();
    }
  }
}

void Lexer::Operator() {
  constexpr std::string_view kLong[] = {"//", "**", "==", "!=", ">=", "<="};
  constexpr std::string_view kShort = "+-/*%~[](){}><=.:|,;";
  std::string op;
  for (const std::string_view candidate : kLong) {
    if (At(candidate)) op = candidate;
  }
  if (op.empty()) {
    size_t next = pos_;
    DecodeUtf8(source_, next);
    op = source_.substr(pos_, next - pos_);
    if (op.size() != 1 || kShort.find(op[0]) == std::string_view::npos) Error("unexpected char ", ("'" + op + "'"));
  }
  if (op == "{") {
    open_ += '}';
  } else if (op == "(") {
    open_ += ')';
  } else if (op == "[") {
    open_ += ']';
  } else if (op == "}" || op == ")" || op == "]") {
    if (open_.empty()) Error("unexpected '", op, "'");
    if (open_.back() != op[0]) Error("unexpected '", op, "', expected '", open_.back(), "'");
    open_.pop_back();
  }
  Add(TokenKind::kOperator, op);
  Advance(op.size());
}

bool Lexer::Number() {
  const std::string_view text = source_;
  const auto digits = [&](size_t at, auto is_digit) {  // digits with single underscores between them
    size_t end = at;
    while (end < text.size()) {
      if (is_digit(text[end])) {
        ++end;
      } else if (text[end] == '_' && end > at && end + 1 < text.size() && is_digit(text[end + 1])) {
        end += 2;
      } else {
        break;
      }
    }
    return end;
  };
  const size_t whole = digits(pos_, IsDigitChar);
  size_t end = whole;
  bool is_float = false;
  if (pos_ == 0 || text[pos_ - 1] != '.') {
    if (end + 1 < text.size() && text[end] == '.' && IsDigitChar(text[end + 1])) {
      end = digits(end + 1, IsDigitChar);
      is_float = true;
    }
    if (end < text.size() && (text[end] | 0x20) == 'e') {
      size_t at = end + 1;
      if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
      if (at < text.size() && IsDigitChar(text[at])) {
        end = digits(at, IsDigitChar);
        is_float = true;
      }
    }
  }
  if (!is_float) {
    const char kind = pos_ + 1 < text.size() ? static_cast<char>(text[pos_ + 1] | 0x20) : 0;
    const size_t body = pos_ + 2 < text.size() && text[pos_ + 2] == '_' ? pos_ + 3 : pos_ + 2;
    size_t prefixed = 0;
    if (text[pos_] == '0' && kind == 'x') prefixed = digits(body, IsHexDigit);
    if (text[pos_] == '0' && kind == 'o') prefixed = digits(body, [](char c) { return c >= '0' && c <= '7'; });
    if (text[pos_] == '0' && kind == 'b') prefixed = digits(body, [](char c) { return c == '0' || c == '1'; });
    if (prefixed > body) {
      end = prefixed;
    } else if (text[pos_] == '0') {
      end = digits(pos_, [](char c) { return c == '0'; });
    }
  }
  std::string plain(text.substr(pos_, end - pos_));
  std::erase(plain, '_');
  if (is_float) {
    Add(TokenKind::kFloat, plain, Value::Float(ParseFloat(plain).value_or(0)));
  } else {
    std::optional<Int> value;
    try {
      value = ParseInt(plain, 0);
    } catch (const Failure& failure) {
      Error(failure.message);
    }
    if (!value) return false;
    Add(TokenKind::kInteger, plain, Value::Integer(*value));
  }
  Advance(end - pos_);
  return true;
}

void Lexer::Name() {
  size_t end = pos_;
  bool first = true;
  while (end < source_.size()) {
    size_t next = end;
    const char32_t c = DecodeUtf8(source_, next);
    if (!IsIdentifierPart(c)) break;
    if (first && !IsIdentifierStart(c)) Error("Invalid character in identifier");
    first = false;
    end = next;
  }
  Add(TokenKind::kName, source_.substr(pos_, end - pos_));
  Advance(end - pos_);
}

void Lexer::String() {
  const char quote = source_[pos_];
  size_t end = pos_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) Error("unexpected char '", quote, "': the string is not closed");
  Add(TokenKind::kString, Decode(std::string_view(source_).substr(pos_ + 1, end - pos_ - 1)));
  Advance(end + 1 - pos_);
}

// One escape behind a backslash; text[pos] is the character after it.
char32_t Lexer::Escape(std::string_view text, size_t& pos) const {
  const char kind = text[pos++];
  int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
  char32_t c = 0;
  for (; digits > 0; --digits, ++pos) {
    if (pos >= text.size() || !IsHexDigit(text[pos])) Error("truncated \\", kind, " escape in a string");
    c = c * 16 + static_cast<char32_t>(IsDigitChar(text[pos]) ? text[pos] - '0' : (text[pos] | 0x20) - 'a' + 10);
  }
  if (c > 0x10FFFF) Error("illegal Unicode character in a string");
  if (c >= 0xD800 && c < 0xE000) Error("surrogate in a string: it cannot be encoded");
  return c;
}

// Python's unicode-escape decoding, after non-ASCII characters became escapes themselves.
std::string Lexer::Decode(std::string_view body) const {
  if (body.find('\\') == std::string_view::npos) return std::string(body);
  const std::string text = AsciiRepr(body);
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    if (text[pos] != '\\' || pos + 1 >= text.size()) {
      out += text[pos++];
      continue;
    }
    const char c = text[++pos];
    constexpr std::string_view kPlain = "\\'\"abfnrtv";
    constexpr std::string_view kMeaning = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t at = kPlain.find(c); at != std::string_view::npos) {
      out += kMeaning[at];
      ++pos;
    } else if (c == '\n') {
      ++pos;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      AppendUtf8(out, Escape(text, pos));
    } else if (c >= '0' && c <= '7') {
      char32_t value = 0;
      for (int i = 0; i < 3 && pos < text.size() && text[pos] >= '0' && text[pos] <= '7'; ++i) {
        value = value * 8 + static_cast<char32_t>(text[pos++] - '0');
      }
      AppendUtf8(out, value);
    } else if (c == 'N') {
      Error("\\N{...} in a string is not supported: write the character itself");
    } else {
      out += '\\';
    }
  }
  return out;
}

std::vector<Token> Lexer::Run() {
  while (pos_ < source_.size()) Root();
  Add(TokenKind::kEnd);
  return std::move(tokens_);
}

}  // namespace

std::vector<Token> Tokenize(std::string_view source) { return Lexer(source).Run(); }

}  // namespace vllm::jinja
