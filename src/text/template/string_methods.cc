// The methods of str.
#include <algorithm>

#include "text/template/format.h"
#include "text/template/interpreter.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

// A new string of the kind of `self`.
Value Like(Interpreter& interpreter, const Value& self, std::string text) {
  if (!self.str().markup) return NewString(interpreter.budget(), std::move(text));
  interpreter.budget().String(static_cast<int64_t>(text.size()));
  return Value::Markup(std::move(text));
}
Value Like(Interpreter& interpreter, const Value& self, std::string_view text) {
  return Like(interpreter, self, std::string(text));
}

// A Markup escapes the plain strings that it takes in.
std::string Taken(const Value& self, const Value& other) {
  return self.str().markup && !other.str().markup ? EscapeHtml(other.text()) : other.text();
}

const Value& NeedString(std::string_view method, const Value& value) {
  if (!value.is_string()) Fail(method, "() argument must be str, not ", TypeName(value));
  return value;
}

void Work(Interpreter& interpreter, const Value& self) {
  interpreter.budget().Step(static_cast<int64_t>(self.text().size() >> 4));
}

template <std::string (*Map)(std::string_view)>
Value Mapped(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments none("str method", {.positional_only = true}, args);
  interpreter.budget().Step(static_cast<int64_t>(self.text().size() >> 2));
  return Like(interpreter, self, Map(self.text()));
}

template <bool (*Class)(char32_t)>
Value Is(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments none("str method", {.positional_only = true}, args);
  Work(interpreter, self);
  return Value::Bool(AllIn(self.text(), Class));
}

template <bool (*Test)(std::string_view)>
Value IsWhole(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments none("str method", {.positional_only = true}, args);
  Work(interpreter, self);
  return Value::Bool(Test(self.text()));
}

bool IsAsciiText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}
bool IsPrintableText(std::string_view text) { return text.empty() || AllIn(text, IsPrintable); }
bool IsIdentifierText(std::string_view text) {
  if (text.empty()) return false;
  size_t pos = 0;
  if (!IsIdentifierStart(DecodeUtf8(text, pos))) return false;
  return pos >= text.size() || AllIn(text.substr(pos), IsIdentifierPart);
}

// The worst case is the product of the two lengths, so that is what it costs.
size_t FindFromRight(Interpreter& interpreter, std::string_view text, std::string_view part) {
  interpreter.budget().Step(static_cast<int64_t>((text.size() >> 6) * (part.size() + 1)));
  return text.rfind(part);
}

template <Side kSide>
Value Strip(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("strip", {.names = {"chars"}, .positional_only = true}, args);
  Work(interpreter, self);
  if (!a.given(0)) return Like(interpreter, self, StripSpace(self.text(), kSide));
  return Like(interpreter, self, StripChars(self.text(), NeedString("strip", a[0]).text(), kSide));
}

template <bool kFromRight>
Value Split(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("split", {.names = {"sep", "maxsplit"}}, args);
  const int64_t max = a.integer(1, -1);
  Work(interpreter, self);
  std::vector<std::string_view> parts;
  if (a.given(0)) {
    const std::string& separator = NeedString("split", a[0]).text();
    if (separator.empty()) Fail("empty separator");
    if (kFromRight) interpreter.budget().Step(static_cast<int64_t>((self.text().size() >> 6) * separator.size()));
    parts = kFromRight ? SplitOnFromRight(self.text(), separator, max) : SplitOn(self.text(), separator, max);
  } else {
    parts = kFromRight ? SplitSpaceFromRight(self.text(), max) : SplitSpace(self.text(), max);
  }
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(Like(interpreter, self, part));
  return NewList(interpreter.budget(), std::move(items));
}

Value SplitLinesMethod(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("splitlines", {.names = {"keepends"}}, args);
  Work(interpreter, self);
  std::vector<Value> items;
  for (const std::string_view line : SplitLines(self.text(), a.truthy(0, false)))
    items.push_back(Like(interpreter, self, line));
  return NewList(interpreter.budget(), std::move(items));
}

// The bytes that optional start and end arguments cut out; nothing when start lies behind the end.
struct Window {
  bool valid = true;
  size_t begin = 0;   // bytes
  int64_t first = 0;  // characters before it
  std::string_view text;
};

Window Cut(Interpreter& interpreter, const Value& self, const Arguments& a, int start_index) {
  const Str& str = self.str();
  const auto clamp = [&](int index, int64_t otherwise) {
    if (!a.given(index)) return otherwise;
    int64_t at = ToIndex(a[index]);
    if (at < 0) at = std::max<int64_t>(0, at + str.length);
    return at;
  };
  Work(interpreter, self);
  const int64_t start = clamp(start_index, 0), end = std::min(clamp(start_index + 1, str.length), str.length);
  Window window;
  window.valid = start <= end;
  if (!window.valid) return window;
  window.first = start;
  window.begin = ByteOffset(str.text, start);
  window.text = std::string_view(str.text).substr(
      window.begin, ByteOffset(std::string_view(str.text).substr(window.begin), end - start));
  return window;
}

template <bool kEnd>
Value StartsWith(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("startswith", {.names = {"prefix", "start", "end"}, .required = 1, .positional_only = true}, args);
  const Window window = Cut(interpreter, self, a, 1);
  const auto matches = [&](const Value& part) {
    if (!part.is_string())
      Fail(kEnd ? "endswith" : "startswith", " first arg must be str or a tuple of str, not ", TypeName(part));
    if (!window.valid) return false;
    return kEnd ? window.text.ends_with(part.text()) : window.text.starts_with(part.text());
  };
  if (!a[0].is_tuple()) return Value::Bool(matches(a[0]));
  for (const Value& part : a[0].items()) {
    if (matches(part)) return Value::Bool(true);
  }
  return Value::Bool(false);
}

template <bool kRight, bool kMust>
Value Find(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("find", {.names = {"sub", "start", "end"}, .required = 1, .positional_only = true}, args);
  const std::string& part = NeedString("find", a[0]).text();
  const Window window = Cut(interpreter, self, a, 1);
  const size_t at = !window.valid ? std::string_view::npos
                    : kRight      ? FindFromRight(interpreter, window.text, part)
                                  : FindText(window.text, part);
  if (at == std::string_view::npos) {
    if (kMust) Fail("substring not found");
    return Value::Integer(-1);
  }
  return Value::Integer(window.first + CountCodePoints(window.text.substr(0, at)));
}

Value Count(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("count", {.names = {"sub", "start", "end"}, .required = 1, .positional_only = true}, args);
  const std::string& part = NeedString("count", a[0]).text();
  const Window window = Cut(interpreter, self, a, 1);
  return Value::Integer(window.valid ? CountOf(window.text, part) : 0);
}

Value Replace(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("replace", {.names = {"old", "new", "count"}, .required = 2, .positional_only = true}, args);
  const std::string& old = NeedString("replace", a[0]).text();
  const std::string with = Taken(self, NeedString("replace", a[1]));
  const int64_t count = a.integer(2, -1);
  Work(interpreter, self);
  interpreter.budget().String(ReplacedSize(self.text(), old, with, count));
  return Like(interpreter, self, ReplaceAll(self.text(), old, with, count));
}

Value JoinMethod(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("join", {.names = {"iterable"}, .required = 1, .positional_only = true}, args);
  if (!IsIterable(a[0])) Fail("can only join an iterable");
  Iterator source(interpreter.budget(), a[0]);
  std::string out;
  int64_t index = 0;
  for (Value item; source.Next(item); ++index) {
    if (!item.is_string()) Fail("sequence item ", index, ": expected str instance, ", TypeName(item), " found");
    if (index > 0) out += self.text();
    out += Taken(self, item);
    interpreter.budget().CheckString(static_cast<int64_t>(out.size()));
  }
  return Like(interpreter, self, std::move(out));
}

Value FormatMethod(Interpreter& interpreter, const Value& self, Args& args) {
  if (!self.str().markup) return NewString(interpreter.budget(), StrFormat(interpreter, self.str(), args));
  Args escaped = args;
  const auto escape = [](Value& value) {
    if (value.is_string() && !value.str().markup) value = Value::String(EscapeHtml(value.text()));
  };
  for (Value& value : escaped.positional) escape(value);
  for (auto& [name, value] : escaped.keywords) escape(value);
  return Like(interpreter, self, StrFormat(interpreter, self.str(), escaped));
}

Value FormatMapMethod(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("format_map", {.names = {"mapping"}, .required = 1, .positional_only = true}, args);
  if (!a[0].is_dict()) Fail("format_map() argument must be a mapping, not ", TypeName(a[0]));
  Args named;
  for (const auto& [key, value] : a[0].dict().entries()) {
    if (key.is_string()) named.keywords.emplace_back(key.text(), value);
  }
  return FormatMethod(interpreter, self, named);
}

template <char kAlign>
Value Justify(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("justify", {.names = {"width", "fillchar"}, .required = 1, .positional_only = true}, args);
  const std::string fill = a.has(1) ? Taken(self, NeedString("justify", a[1])) : " ";
  if (CountCodePoints(fill) != 1) Fail("The fill character must be exactly one character long");
  const int64_t width = a.integer(0, 0), missing = width - self.str().length;
  if (missing <= 0) return self;
  // Python puts the odd blank of center() to the left when the width is odd too.
  const int64_t left = kAlign == '>' ? missing : kAlign == '^' ? missing / 2 + (missing & width & 1) : 0;
  interpreter.budget().String(static_cast<int64_t>(self.text().size()) + missing * static_cast<int64_t>(fill.size()));
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += self.text();
  for (int64_t i = left; i < missing; ++i) out += fill;
  return Like(interpreter, self, std::move(out));
}

Value ZFill(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("zfill", {.names = {"width"}, .required = 1, .positional_only = true}, args);
  const int64_t missing = a.integer(0, 0) - self.str().length;
  if (missing <= 0) return self;
  interpreter.budget().String(static_cast<int64_t>(self.text().size()) + missing);
  std::string out = self.text();
  const bool sign = !out.empty() && (out[0] == '+' || out[0] == '-');
  out.insert(sign ? 1 : 0, static_cast<size_t>(missing), '0');
  return Like(interpreter, self, std::move(out));
}

Value ExpandTabs(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("expandtabs", {.names = {"tabsize"}}, args);
  const int64_t size = a.integer(0, 8);
  std::string out;
  int64_t column = 0;
  const std::string& text = self.text();
  for (size_t pos = 0; pos < text.size();) {
    const size_t length = SequenceLength(text, pos);
    if (text[pos] == '\t') {
      const int64_t blanks = size > 0 ? size - column % size : 0;
      interpreter.budget().String(static_cast<int64_t>(out.size()) + blanks);
      out.append(static_cast<size_t>(blanks), ' ');
      column += blanks;
    } else {
      out.append(text, pos, length);
      column = text[pos] == '\n' || text[pos] == '\r' ? 0 : column + 1;
    }
    pos += length;
  }
  return Like(interpreter, self, std::move(out));
}

template <bool kRight>
Value Partition(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("partition", {.names = {"sep"}, .required = 1, .positional_only = true}, args);
  const std::string& separator = NeedString("partition", a[0]).text();
  if (separator.empty()) Fail("empty separator");
  Work(interpreter, self);
  const std::string_view text = self.text();
  const size_t at = kRight ? FindFromRight(interpreter, text, separator) : FindText(text, separator);
  const auto part = [&](std::string_view s) { return Like(interpreter, self, s); };
  std::vector<Value> parts;
  if (at == std::string_view::npos) {
    parts = kRight ? std::vector<Value>{part(""), part(""), self} : std::vector<Value>{self, part(""), part("")};
  } else {
    parts = {part(text.substr(0, at)), part(separator), part(text.substr(at + separator.size()))};
  }
  return NewList(interpreter.budget(), std::move(parts), true);
}

template <bool kSuffix>
Value RemoveAffix(Interpreter& interpreter, const Value& self, Args& args) {
  const Arguments a("removeprefix", {.names = {"prefix"}, .required = 1, .positional_only = true}, args);
  const std::string& affix = NeedString(kSuffix ? "removesuffix" : "removeprefix", a[0]).text();
  std::string_view text = self.text();
  if (kSuffix ? !text.ends_with(affix) : !text.starts_with(affix)) return self;
  return Like(interpreter, self, kSuffix ? text.substr(0, text.size() - affix.size()) : text.substr(affix.size()));
}

Value NotServed(Interpreter&, const Value&, Args&) {
  Refuse("str.encode, str.translate and str.maketrans are not supported");
}

constexpr Method kMethods[] = {
    {"capitalize", Mapped<Capitalize>},
    {"casefold", Mapped<CaseFold>},
    {"center", Justify<'^'>},
    {"count", Count},
    {"encode", NotServed},
    {"endswith", StartsWith<true>},
    {"expandtabs", ExpandTabs},
    {"find", Find<false, false>},
    {"format", FormatMethod},
    {"format_map", FormatMapMethod},
    {"index", Find<false, true>},
    {"isalnum", Is<IsAlnum>},
    {"isalpha", Is<IsAlpha>},
    {"isascii", IsWhole<IsAsciiText>},
    {"isdecimal", Is<IsDecimal>},
    {"isdigit", Is<IsDigit>},
    {"isidentifier", IsWhole<IsIdentifierText>},
    {"islower", IsWhole<StrIsLower>},
    {"isnumeric", Is<IsNumeric>},
    {"isprintable", IsWhole<IsPrintableText>},
    {"isspace", Is<IsSpace>},
    {"istitle", IsWhole<StrIsTitle>},
    {"isupper", IsWhole<StrIsUpper>},
    {"join", JoinMethod},
    {"ljust", Justify<'<'>},
    {"lower", Mapped<ToLower>},
    {"lstrip", Strip<Side::kLeft>},
    {"maketrans", NotServed},
    {"partition", Partition<false>},
    {"removeprefix", RemoveAffix<false>},
    {"removesuffix", RemoveAffix<true>},
    {"replace", Replace},
    {"rfind", Find<true, false>},
    {"rindex", Find<true, true>},
    {"rjust", Justify<'>'>},
    {"rpartition", Partition<true>},
    {"rsplit", Split<true>},
    {"rstrip", Strip<Side::kRight>},
    {"split", Split<false>},
    {"splitlines", SplitLinesMethod},
    {"startswith", StartsWith<false>},
    {"strip", Strip<Side::kBoth>},
    {"swapcase", Mapped<SwapCase>},
    {"title", Mapped<ToTitle>},
    {"translate", NotServed},
    {"upper", Mapped<ToUpper>},
    {"zfill", ZFill},
};

}  // namespace

std::span<const Method> StringMethods() { return kMethods; }

}  // namespace vllm::jinja
