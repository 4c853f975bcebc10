// Filters that make text.
#include <algorithm>

#include "text/template/format.h"
#include "text/template/interpreter.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

// Text of the value, as markupsafe.soft_str: a Markup stays one.
Value Soft(Interpreter& interpreter, const Value& value) {
  return value.is_string() ? value : NewString(interpreter.budget(), ToStr(interpreter.budget(), value));
}

Value Like(Interpreter& interpreter, const Value& soft, std::string text) {
  interpreter.budget().String(static_cast<int64_t>(text.size()));
  return soft.str().markup ? Value::Markup(std::move(text)) : Value::String(std::move(text));
}

constexpr Signature kNone = {};

template <std::string (*Map)(std::string_view)>
Value Mapped(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("filter", kNone, args);
  const Value text = Soft(interpreter, value);
  interpreter.budget().Step(static_cast<int64_t>(text.text().size() >> 2));
  return Like(interpreter, text, Map(text.text()));
}

// Words begin behind whitespace and opening brackets; their first character becomes uppercase, the rest lowercase.
std::string TitleWords(std::string_view text) {
  const auto separates = [](char32_t c) {
    return IsSpace(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
  };
  std::string out;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = begin, pos = begin;
    const bool separator = separates(DecodeUtf8(text, pos));
    for (end = pos; end < text.size(); end = pos) {
      if (separates(DecodeUtf8(text, pos)) != separator) break;
    }
    const std::string_view part = text.substr(begin, end - begin);
    const size_t first = SequenceLength(part, 0);
    out += ToUpper(part.substr(0, first));
    out += ToLower(part.substr(first));
    begin = end;
  }
  return out;
}

Value Trim(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("trim", {.names = {"chars"}}, args);
  const Value text = Soft(interpreter, value);
  interpreter.budget().Step(static_cast<int64_t>(text.text().size() >> 6));
  if (!a.given(0)) return Like(interpreter, text, std::string(StripSpace(text.text(), Side::kBoth)));
  if (!a[0].is_string()) Fail("strip arg must be None or str");
  return Like(interpreter, text, std::string(StripChars(text.text(), a[0].text(), Side::kBoth)));
}

Value Replace(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("replace", {.names = {"old", "new", "count"}, .required = 2}, args);
  Budget& budget = interpreter.budget();
  const std::string text = ToStr(budget, value), old = ToStr(budget, a[0]), with = ToStr(budget, a[1]);
  const int64_t count = a.given(2) ? a.integer(2, -1) : -1;
  budget.Step(static_cast<int64_t>(text.size() >> 4));
  budget.String(ReplacedSize(text, old, with, count));
  return NewString(budget, ReplaceAll(text, old, with, count));
}

Value Center(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("center", {.names = {"width"}}, args);
  const Value text = Soft(interpreter, value);
  Args width{.positional = {a.get(0, Value::Integer(80))}};
  return FindMethod(text, "center")->body(interpreter, text, width);
}

Value Escape(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("escape", kNone, args);
  if (value.is_string() && value.str().markup) return value;
  const std::string escaped = EscapeHtml(ToStr(interpreter.budget(), value));
  interpreter.budget().String(static_cast<int64_t>(escaped.size()));
  return Value::Markup(escaped);
}

Value ForceEscape(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("forceescape", kNone, args);
  const std::string escaped = EscapeHtml(ToStr(interpreter.budget(), value));
  interpreter.budget().String(static_cast<int64_t>(escaped.size()));
  return Value::Markup(escaped);
}

Value Safe(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("safe", kNone, args);
  std::string text = ToStr(interpreter.budget(), value);
  interpreter.budget().String(static_cast<int64_t>(text.size()));
  return Value::Markup(std::move(text));
}

Value String(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("string", kNone, args);
  return Soft(interpreter, value);
}

Value Format(Interpreter& interpreter, const Value& value, const Args& args) {
  if (!args.positional.empty() && !args.keywords.empty()) {
    Fail("can't handle positional and keyword arguments at the same time");
  }
  Value values;
  if (args.keywords.empty()) {
    values = NewList(interpreter.budget(), args.positional, true);
  } else {
    Dict named;
    for (const auto& [name, given] : args.keywords) named.Set(name, given);
    values = NewDict(interpreter.budget(), std::move(named));
  }
  return BinaryOperation(interpreter.budget(), Operator::kMod, Soft(interpreter, value), values);
}

Value Indent(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("indent", {.names = {"width", "first", "blank"}}, args);
  Budget& budget = interpreter.budget();
  RequireDefined(value);
  if (!value.is_string()) Fail("indent: a string is needed, not ", TypeName(value));
  std::string indention;
  if (a.has(0) && a[0].is_string()) {
    indention = a[0].text();
  } else {
    const int64_t width = std::max<int64_t>(0, a.integer(0, 4));
    budget.String(width);
    indention.assign(static_cast<size_t>(width), ' ');
  }
  const std::string text = value.text() + "\n";
  const auto lines = SplitLines(text, false);
  budget.String(static_cast<int64_t>(text.size()));
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    const bool wanted = i == 0 ? a.truthy(1, false) : a.truthy(2, false) || !lines[i].empty();
    if (wanted) out += indention;
    out += lines[i];
    budget.Step();
    budget.CheckString(static_cast<int64_t>(out.size()));
  }
  return Like(interpreter, value, std::move(out));
}

Value Truncate(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("truncate", {.names = {"length", "killwords", "end", "leeway"}}, args);
  const Value end = a.get(2, Value::String("..."));
  if (!end.is_string()) Fail("truncate: end must be a string");
  const int64_t length = a.integer(0, 255), leeway = a.given(3) ? a.integer(3, 5) : 5, room = length - end.str().length;
  if (room < 0) Fail("expected length >= ", end.str().length, ", got ", length);
  if (leeway < 0) Fail("expected leeway >= 0, got ", leeway);
  const int64_t size = LengthOf(value);
  if (size < 0) Fail("object of type '", TypeName(value), "' has no len()");
  if (size <= length + leeway) return value;
  if (!value.is_string()) Fail("truncate: a string is needed, not ", TypeName(value));
  std::string_view head = std::string_view(value.text()).substr(0, ByteOffset(value.text(), room));
  if (!a.truthy(1, false)) head = SplitOnFromRight(head, " ", 1)[0];
  return Like(interpreter, value, std::string(head) + end.text());
}

Value WordCount(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("wordcount", kNone, args);
  const std::string text = ToStr(interpreter.budget(), value);
  Int count = 0;
  bool in_word = false;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = DecodeUtf8(text, pos);
    const bool word = c == '_' || IsAlnum(c);
    count += word && !in_word;
    in_word = word;
  }
  return Value::Integer(count);
}

std::string QuoteUrl(std::string_view text, bool query) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte < 0x80 && (IsAlnum(byte) || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query));
    if (plain) {
      out += c;
    } else if (c == ' ' && query) {
      out += '+';
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 0xF];
    }
  }
  return out;
}

Value UrlEncode(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments none("urlencode", kNone, args);
  Budget& budget = interpreter.budget();
  if (value.is_string() || !IsIterable(value)) return NewString(budget, QuoteUrl(ToStr(budget, value), false));
  std::vector<Value> pairs =
      Collect(budget, value.is_dict() ? Value::FromObject(interpreter.Make<View>(View::What::kItems, value)) : value);
  std::string out;
  for (const Value& pair : pairs) {
    const std::vector<Value> both = Collect(budget, pair);
    if (both.size() != 2) Fail("urlencode: pairs of key and value are needed");
    if (!out.empty()) out += '&';
    out += QuoteUrl(ToStr(budget, both[0]), true) + "=" + QuoteUrl(ToStr(budget, both[1]), true);
    budget.CheckString(static_cast<int64_t>(out.size()));
  }
  return NewString(budget, std::move(out));
}

Value XmlAttr(Interpreter& interpreter, const Value& value, const Args& args) {
  const Arguments a("xmlattr", {.names = {"autospace"}}, args);
  Budget& budget = interpreter.budget();
  if (!value.is_dict()) Fail("xmlattr: a dict is needed, not ", TypeName(value));
  std::string out;
  const auto escaped = [&](const Value& part) {
    const std::string text = ToStr(budget, part);
    return part.is_string() && part.str().markup ? text : EscapeHtml(text);
  };
  for (const auto& [key, item] : value.dict().entries()) {
    if (item.is_none() || item.is_undefined()) continue;
    if (!key.is_string()) Fail("expected string or bytes-like object, got '", TypeName(key), "'");
    if (key.text().find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      Fail("Invalid character in attribute name: ", ToRepr(budget, key));
    }
    if (!out.empty()) out += ' ';
    out += escaped(key) + "=\"" + escaped(item) + "\"";
    budget.CheckString(static_cast<int64_t>(out.size()));
  }
  if (a.truthy(0, true) && !out.empty()) out.insert(0, " ");
  return NewString(budget, std::move(out));
}

Value ToJsonFilter(Interpreter& interpreter, const Value& value, const Args& args) {
  return ToJson(interpreter.budget(), value, args);
}

constexpr FilterDef kFilters[] = {
    {"capitalize", Mapped<Capitalize>},
    {"center", Center},
    {"e", Escape},
    {"escape", Escape},
    {"forceescape", ForceEscape},
    {"format", Format},
    {"indent", Indent},
    {"lower", Mapped<ToLower>},
    {"replace", Replace},
    {"safe", Safe},
    {"string", String},
    {"title", Mapped<TitleWords>},
    {"tojson", ToJsonFilter},
    {"trim", Trim},
    {"truncate", Truncate},
    {"upper", Mapped<ToUpper>},
    {"urlencode", UrlEncode},
    {"wordcount", WordCount},
    {"xmlattr", XmlAttr},
};

}  // namespace

std::span<const FilterDef> TextFilters() { return kFilters; }

}  // namespace vllm::jinja
