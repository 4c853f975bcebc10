// str.format as the sandbox runs it: fields read attributes and items through the template's own rules.
#include "text/template/format.h"
#include "text/template/interpreter.h"

namespace vllm::jinja {
namespace {

class Formatter {
 public:
  Formatter(Interpreter& interpreter, const Args& args) : interpreter_(interpreter), args_(args) {}
  std::string Format(std::string_view text, int levels);

 private:
  std::string Replacement(std::string_view field, int levels);
  Value Named(std::string_view name);
  Value Lookup(std::string_view field);

  Interpreter& interpreter_;
  const Args& args_;
  int64_t automatic_ = 0;
  bool manual_ = false;
};

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Value Formatter::Named(std::string_view name) {
  std::string automatic;
  if (name.empty()) {
    if (manual_) Fail("cannot switch from manual field specification to automatic field numbering");
    automatic = std::to_string(automatic_++);
    name = automatic;
  } else if (IsNumber(name)) {
    if (automatic_ > 0) Fail("cannot switch from manual field specification to automatic field numbering");
    manual_ = true;
  }
  if (IsNumber(name)) {
    const auto index = ParseInt(name, 10);
    if (!index || *index >= static_cast<Int>(args_.positional.size())) {
      Fail("Replacement index ", name, " out of range for positional args tuple");
    }
    return args_.positional[static_cast<size_t>(*index)];
  }
  for (const auto& [key, value] : args_.keywords) {
    if (key == name) return value;
  }
  Fail("KeyError: '", name, "'");
}

Value Formatter::Lookup(std::string_view field) {
  size_t at = std::min(field.find_first_of(".["), field.size());
  Value value = Named(field.substr(0, at));
  while (at < field.size()) {
    interpreter_.budget().Step();
    if (field[at] == '.') {
      const size_t end = std::min(field.find_first_of(".[", at + 1), field.size());
      const std::string_view name = field.substr(at + 1, end - at - 1);
      if (name.empty()) Fail("Empty attribute in format string");
      value = interpreter_.Attribute(value, std::string(name));
      at = end;
    } else if (field[at] == '[') {
      const size_t end = field.find(']', at);
      if (end == std::string_view::npos) Fail("Missing ']' in format string");
      const std::string_view key = field.substr(at + 1, end - at - 1);
      if (key.empty()) Fail("Empty attribute in format string");
      value = interpreter_.Item(
          value, IsNumber(key) ? Value::Integer(ParseInt(key, 10).value_or(0)) : Value::String(std::string(key)));
      at = end + 1;
    } else {
      Fail("Only '.' or '[' may follow ']' in format field specifier");
    }
  }
  return value;
}

std::string Formatter::Replacement(std::string_view field, int levels) {
  size_t end = 0;
  for (bool in_key = false; end < field.size(); ++end) {
    if (field[end] == '[') in_key = true;
    if (field[end] == ']') in_key = false;
    if (!in_key && (field[end] == ':' || field[end] == '!')) break;
  }
  Value value = Lookup(field.substr(0, end));
  std::string_view rest = field.substr(end);
  if (rest.starts_with('!')) {
    if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) Fail("expected ':' after conversion specifier");
    Budget& budget = interpreter_.budget();
    switch (rest[1]) {
      case 's':
        value = NewString(budget, ToStr(budget, value));
        break;
      case 'r':
        value = NewString(budget, ToRepr(budget, value));
        break;
      case 'a':
        value = NewString(budget, AsciiRepr(ToRepr(budget, value)));
        break;
      default:
        Fail("Unknown conversion specifier '", std::string(1, rest[1]), "'");
    }
    rest.remove_prefix(2);
  }
  if (rest.starts_with(':')) rest.remove_prefix(1);
  return FormatValue(interpreter_.budget(), value, Format(rest, levels - 1));
}

std::string Formatter::Format(std::string_view text, int levels) {
  if (levels < 0) Fail("Max string recursion exceeded");
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const char c = text[pos];
    if (c != '{' && c != '}') {
      const size_t next = std::min(text.find_first_of("{}", pos), text.size());
      out += text.substr(pos, next - pos);
      pos = next;
      continue;
    }
    if (pos + 1 < text.size() && text[pos + 1] == c) {
      out += c;
      pos += 2;
      continue;
    }
    if (c == '}') Fail("Single '}' encountered in format string");
    if (pos + 1 >= text.size()) Fail("Single '{' encountered in format string");
    size_t end = pos + 1;
    int open = 1;
    bool in_key = false;
    for (; end < text.size(); ++end) {
      if (text[end] == '[') in_key = true;
      if (text[end] == ']') in_key = false;
      if (in_key) continue;
      if (text[end] == '{') ++open;
      if (text[end] == '}' && --open == 0) break;
    }
    if (end >= text.size()) Fail("expected '}' before end of string");
    out += Replacement(text.substr(pos + 1, end - pos - 1), levels);
    interpreter_.budget().String(static_cast<int64_t>(out.size()));
    pos = end + 1;
  }
  return out;
}

}  // namespace

std::string StrFormat(Interpreter& interpreter, const Str& text, const Args& args) {
  return Formatter(interpreter, args).Format(text.text, 2);
}

}  // namespace vllm::jinja
