// The tojson filter: Python's json.dumps with ensure_ascii (off by default), indent, separators and sort_keys.
#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "text/template/builtins.h"
#include "text/template/format.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

struct Options {
  bool ascii = false;
  bool sorted = false;
  bool indented = false;
  std::string indent = {};
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

class Dumper {
 public:
  Dumper(Budget& budget, const Options& options) : budget_(budget), options_(options) {}
  std::string Run(const Value& value) {
    Dump(value, 0);
    return std::move(out_);
  }

 private:
  void Dump(const Value& value, int depth);
  void DumpList(const std::vector<Value>& items, int depth);
  void DumpDict(const Dict& dict, int depth);
  void Text(std::string_view text);
  void Escape(char32_t c);
  void Line(int depth) {
    if (!options_.indented) return;
    out_ += '\n';
    for (int i = 0; i < depth; ++i) out_ += options_.indent;
  }
  static std::string Number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return FloatText(value);
  }

  Budget& budget_;
  const Options& options_;
  std::string out_;
};

void Dumper::Escape(char32_t c) {
  constexpr char kHex[] = "0123456789abcdef";
  out_ += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out_ += kHex[(c >> shift) & 0xF];
}

void Dumper::Text(std::string_view text) {
  out_ += '"';
  for (size_t pos = 0; pos < text.size();) {
    const size_t begin = pos;
    const char32_t c = DecodeUtf8(text, pos);
    switch (c) {
      case '"':
        out_ += "\\\"";
        continue;
      case '\\':
        out_ += "\\\\";
        continue;
      case '\n':
        out_ += "\\n";
        continue;
      case '\r':
        out_ += "\\r";
        continue;
      case '\t':
        out_ += "\\t";
        continue;
      case '\b':
        out_ += "\\b";
        continue;
      case '\f':
        out_ += "\\f";
        continue;
      default:
        break;
    }
    if (c < 0x20 || (options_.ascii && c >= 0x7F)) {
      if (c >= 0x10000) {
        Escape(0xD800 + ((c - 0x10000) >> 10));
        Escape(0xDC00 + ((c - 0x10000) & 0x3FF));
      } else {
        Escape(c);
      }
    } else {
      out_ += text.substr(begin, pos - begin);
    }
  }
  out_ += '"';
}

void Dumper::DumpList(const std::vector<Value>& items, int depth) {
  if (items.empty()) {
    out_ += "[]";
    return;
  }
  out_ += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out_ += options_.item_separator;
    Line(depth + 1);
    Dump(items[i], depth + 1);
  }
  Line(depth);
  out_ += ']';
}

void Dumper::DumpDict(const Dict& dict, int depth) {
  if (dict.size() == 0) {
    out_ += "{}";
    return;
  }
  std::vector<const Dict::Entry*> entries;
  for (const auto& entry : dict.entries()) entries.push_back(&entry);
  if (options_.sorted) {
    bool ordered = true;  // keys of one dict differ, so an unstable sort gives the same
    for (const auto* entry : entries) {
      if (entry != entries[0]) Less(budget_, entries[0]->first, entry->first);  // fails on keys without an order
      ordered = ordered && Equal(budget_, entry->first, entry->first);
    }
    if (!ordered) Fail("tojson: NaN is a key, and has no order");
    std::sort(entries.begin(), entries.end(),
              [&](const auto* a, const auto* b) { return Less(budget_, a->first, b->first); });
  }
  out_ += '{';
  bool first = true;
  for (const auto* entry : entries) {
    if (!first) out_ += options_.item_separator;
    first = false;
    Line(depth + 1);
    const Value& key = entry->first;
    if (key.is_string()) {
      Text(key.text());
    } else if (key.is_none()) {
      out_ += "\"null\"";
    } else if (key.is_bool()) {
      out_ += key.boolean() ? "\"true\"" : "\"false\"";
    } else if (key.is_number()) {
      out_ += '"' + (key.is_float() ? Number(key.number()) : IntText(key.integer())) + '"';
    } else {
      Fail("keys must be str, int, float, bool or None, not ", TypeName(key));
    }
    out_ += options_.key_separator;
    Dump(entry->second, depth + 1);
  }
  Line(depth);
  out_ += '}';
}

void Dumper::Dump(const Value& value, int depth) {
  if (depth > base::kMaxTemplateValueDepth) Fail("values are nested too deeply for tojson");
  const size_t before = out_.size();
  switch (value.kind()) {
    case Value::Kind::kNone:
      out_ += "null";
      break;
    case Value::Kind::kBool:
      out_ += value.boolean() ? "true" : "false";
      break;
    case Value::Kind::kInt:
      out_ += IntText(value.integer());
      break;
    case Value::Kind::kFloat:
      out_ += Number(value.number());
      break;
    case Value::Kind::kString:
      Text(value.text());
      break;
    case Value::Kind::kList:
      DumpList(value.items(), depth);
      break;
    case Value::Kind::kDict:
      DumpDict(value.dict(), depth);
      break;
    default:
      Fail("Object of type ", TypeName(value), " is not JSON serializable");
  }
  budget_.Step(1 + static_cast<int64_t>((out_.size() - before) >> 6));
  budget_.CheckString(static_cast<int64_t>(out_.size()));
}

}  // namespace

Value ToJson(Budget& budget, const Value& value, const Args& args) {
  const Arguments a("tojson", {.names = {"ensure_ascii", "indent", "separators", "sort_keys"}}, args);
  Options options;
  options.ascii = a.truthy(0, false);
  options.sorted = a.truthy(3, false);
  if (a.given(1)) {
    options.indented = true;
    options.item_separator.assign(1, ',');
    if (a[1].is_string()) {
      options.indent = a[1].text();
    } else {
      const int64_t width = std::max<int64_t>(0, a.integer(1, 0));
      budget.String(width);
      options.indent.assign(static_cast<size_t>(width), ' ');
    }
  }
  if (a.given(2)) {
    const std::vector<Value> pair = Collect(budget, a[2]);
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) Fail("tojson: separators are two strings");
    options.item_separator = pair[0].text();
    options.key_separator = pair[1].text();
  }
  return NewString(budget, Dumper(budget, options).Run(value));
}

}  // namespace vllm::jinja
