// Values: construction, truth, equality, order, hashing, and the text of Python's str() and repr().
#include "text/template/value.h"

#include <cmath>
#include <functional>

#include "base/limits.h"
#include "text/template/format.h"
#include "text/template/macro.h"
#include "text/template/objects.h"
#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

constexpr size_t kIndexedFrom = 9;  // below, a scan is faster than hashing

std::shared_ptr<const Str> MakeStr(std::string text, bool markup) {
  const int64_t length = CountCodePoints(text);
  return std::make_shared<const Str>(Str{.text = std::move(text), .length = length, .markup = markup});
}

int DeepestOf(const std::vector<Value>& items) {
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.depth());
  return deepest;
}

size_t HashText(std::string_view text) { return std::hash<std::string_view>()(text); }

size_t HashNumber(double value) {
  if (std::floor(value) == value && std::fabs(value) < 1e18) return std::hash<int64_t>()(static_cast<int64_t>(value));
  return std::hash<double>()(value);
}

bool NumbersEqual(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.integer() == b.integer();
  return a.number() == b.number();
}

bool ListsEqual(Budget& budget, const List& a, const List& b) {
  if (a.tuple != b.tuple || a.items.size() != b.items.size()) return false;
  if (&a == &b) return true;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!Equal(budget, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool DictsEqual(Budget& budget, const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  if (&a == &b) return true;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.Find(budget, key);
    if (other == nullptr || !Equal(budget, value, *other)) return false;
  }
  return true;
}

bool ObjectsEqual(Budget& budget, const Value& a, const Value& b) {
  if (a.object() == b.object()) return true;
  if (const Range *x = As<Range>(a), *y = As<Range>(b); x != nullptr && y != nullptr) {
    const Int size = x->size();
    if (size != y->size()) return false;
    return size == 0 || (x->start == y->start && (size == 1 || x->step == y->step));
  }
  if (const View *x = As<View>(a), *y = As<View>(b); x != nullptr && y != nullptr) {
    if (x->what == View::What::kValues || y->what == View::What::kValues) return false;
    if (x->dict.dict().size() != y->dict.dict().size()) return false;
    for (size_t i = 0; i < x->dict.dict().size(); ++i) {
      if (!Contains(budget, b, x->At(i))) return false;
    }
    return true;
  }
  return false;
}

// -1, 0, 1, or nothing for unordered floats; fails where Python has no order.
std::optional<int> Compare(Budget& budget, const Value& a, const Value& b, std::string_view operation) {
  budget.Step();
  RequireDefined(a);
  RequireDefined(b);
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) {
      return a.integer() < b.integer() ? -1 : a.integer() > b.integer() ? 1 : 0;
    }
    const double x = a.number(), y = b.number();
    if (std::isnan(x) || std::isnan(y)) return std::nullopt;
    return x < y ? -1 : x > y ? 1 : 0;
  }
  if (a.is_string() && b.is_string()) {
    budget.Step(static_cast<int64_t>(std::min(a.text().size(), b.text().size()) >> 6));
    const int order = a.text().compare(b.text());  // UTF-8 orders as code points do
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  if (a.is_sequence() && b.is_sequence() && a.list().tuple == b.list().tuple) {
    const auto &x = a.items(), &y = b.items();
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!Equal(budget, x[i], y[i])) return Compare(budget, x[i], y[i], operation);
    }
    return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  Fail("'", operation, "' not supported between instances of '", TypeName(a), "' and '", TypeName(b), "'");
}

void AppendItems(Budget& budget, std::string& out, const std::vector<Value>& items, int depth) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    AppendRepr(budget, out, items[i], depth + 1);
  }
}

void AppendDict(Budget& budget, std::string& out, const Dict& dict, int depth) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out += ", ";
    first = false;
    AppendRepr(budget, out, key, depth + 1);
    out += ": ";
    AppendRepr(budget, out, value, depth + 1);
  }
  out += '}';
}

void AppendObject(Budget& budget, std::string& out, const Value& value, int depth) {
  if (const auto* ns = As<Namespace>(value)) {
    out += "<Namespace ";
    AppendDict(budget, out, ns->attributes, depth);
    out += '>';
  } else if (const auto* range = As<Range>(value)) {
    out += "range(" + IntText(range->start) + ", " + IntText(range->stop);
    if (range->step != 1) out += ", " + IntText(range->step);
    out += ')';
  } else if (const auto* view = As<View>(value)) {
    out += TypeName(value);
    out += "([";
    for (size_t i = 0; i < view->dict.dict().size(); ++i) {
      if (i > 0) out += ", ";
      AppendRepr(budget, out, view->At(i), depth + 1);
    }
    out += "])";
  } else if (const auto* macro = As<Macro>(value)) {
    out += macro->name.empty() ? "<Macro anonymous>" : "<Macro '" + macro->name + "'>";
  } else if (auto* loop = As<Loop>(value)) {
    out += "<LoopContext " + IntText(loop->index0 + 1) + "/" + IntText(loop->Length(budget)) + ">";
  } else {
    base::Append(out, "<");
    out += TypeName(value);
    out += " object>";
  }
}

}  // namespace

Value Value::Undefined(std::string message) {
  Value value;
  value.data_.emplace<0>(std::make_shared<const UndefinedInfo>(UndefinedInfo{.message = std::move(message)}));
  return value;
}

Value Value::Bool(bool b) {
  Value value;
  value.data_.emplace<2>(b);
  return value;
}

Value Value::Integer(Int i) {
  Value value;
  value.data_.emplace<3>(i);
  return value;
}

Value Value::Float(double d) {
  Value value;
  value.data_.emplace<4>(d);
  return value;
}

Value Value::String(std::string text) {
  Value value;
  value.data_.emplace<5>(MakeStr(std::move(text), false));
  return value;
}

Value Value::Markup(std::string text) {
  Value value;
  value.data_.emplace<5>(MakeStr(std::move(text), true));
  return value;
}

Value Value::FromList(std::vector<Value> items) {
  const int depth = 1 + DeepestOf(items);
  Value value;
  value.data_.emplace<6>(std::make_shared<const List>(List{.items = std::move(items), .depth = depth}));
  return value;
}

Value Value::Tuple(std::vector<Value> items) {
  const int depth = 1 + DeepestOf(items);
  Value value;
  value.data_.emplace<6>(std::make_shared<const List>(List{.items = std::move(items), .tuple = true, .depth = depth}));
  return value;
}

Value Value::Grouped(Value key, Value list) {
  std::vector<Value> items{std::move(key), std::move(list)};
  const int depth = 1 + DeepestOf(items);
  Value value;
  value.data_.emplace<6>(
      std::make_shared<const List>(List{.items = std::move(items), .tuple = true, .grouped = true, .depth = depth}));
  return value;
}

Value Value::FromDict(Dict dict) {
  Value value;
  value.data_.emplace<7>(std::make_shared<const Dict>(std::move(dict)));
  return value;
}

Value Value::FromObject(Object* object) {
  Value value;
  value.data_.emplace<8>(object);
  return value;
}

int Value::depth() const { return is_sequence() ? list().depth : is_dict() ? dict().depth() : 0; }

bool Value::SameAs(const Value& other) const {
  if (kind() != other.kind()) return false;
  switch (kind()) {
    case Kind::kUndefined:
      return std::get<0>(data_) == std::get<0>(other.data_);
    case Kind::kNone:
      return true;
    case Kind::kBool:
      return boolean() == other.boolean();
    case Kind::kInt:
      return integer() == other.integer() && integer() >= -5 && integer() <= 256;  // CPython's cached ints
    case Kind::kFloat:
      return false;
    case Kind::kString:
      return std::get<5>(data_) == std::get<5>(other.data_);
    case Kind::kList:
      return std::get<6>(data_) == std::get<6>(other.data_);
    case Kind::kDict:
      return std::get<7>(data_) == std::get<7>(other.data_);
    case Kind::kObject:
      return object() == other.object();
  }
  return false;
}

template <class Same>
const Value* Dict::FindHashed(size_t hash, Same same) const {
  const auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Entry& entry = entries_[it->second];
    if (same(entry.first)) return &entry.second;
  }
  return nullptr;
}

const Value* Dict::Find(std::string_view key) const {
  const auto same = [&](const Value& k) { return k.is_string() && k.text() == key; };
  if (!index_.empty()) return FindHashed(HashText(key), same);
  for (const Entry& entry : entries_) {
    if (same(entry.first)) return &entry.second;
  }
  return nullptr;
}

const Value* Dict::Find(Budget& budget, const Value& key) const {
  const size_t hash = Hash(budget, key);
  const auto same = [&](const Value& k) { return Equal(budget, k, key); };
  if (!index_.empty()) return FindHashed(hash, same);
  for (const Entry& entry : entries_) {
    if (same(entry.first)) return &entry.second;
  }
  return nullptr;
}

void Dict::Insert(size_t hash, Value key, Value value) {
  depth_ = std::max({depth_, 1 + key.depth(), 1 + value.depth()});
  entries_.emplace_back(std::move(key), std::move(value));
  if (!index_.empty()) {
    index_.emplace(hash, static_cast<uint32_t>(entries_.size() - 1));
  } else if (entries_.size() == kIndexedFrom) {
    Budget unbounded(INT64_MAX, INT64_MAX, INT64_MAX);  // nine keys that were hashed before
    for (size_t i = 0; i < entries_.size(); ++i) {
      index_.emplace(Hash(unbounded, entries_[i].first), static_cast<uint32_t>(i));
    }
  }
}

void Dict::Set(std::string key, Value value) {
  if (const Value* found = Find(key)) {
    depth_ = std::max(depth_, 1 + value.depth());
    const_cast<Value&>(*found) = std::move(value);
    return;
  }
  const size_t hash = HashText(key);
  Insert(hash, Value::String(std::move(key)), std::move(value));
}

void Dict::Set(Budget& budget, Value key, Value value) {
  const size_t hash = Hash(budget, key);
  if (const Value* found = Find(budget, key)) {
    depth_ = std::max(depth_, 1 + value.depth());
    const_cast<Value&>(*found) = std::move(value);
    return;
  }
  Insert(hash, std::move(key), std::move(value));
}

std::string_view TypeName(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return "Undefined";
    case Value::Kind::kNone:
      return "NoneType";
    case Value::Kind::kBool:
      return "bool";
    case Value::Kind::kInt:
      return "int";
    case Value::Kind::kFloat:
      return "float";
    case Value::Kind::kString:
      return value.str().markup ? "Markup" : "str";
    case Value::Kind::kList:
      return value.list().grouped ? "_GroupTuple" : value.list().tuple ? "tuple" : "list";
    case Value::Kind::kDict:
      return "dict";
    case Value::Kind::kObject:
      break;
  }
  switch (value.object()->tag()) {
    case Object::Tag::kFunction:
      return "function";
    case Object::Tag::kBound:
      return "builtin_function_or_method";
    case Object::Tag::kMacro:
      return "Macro";
    case Object::Tag::kLoop:
      return "LoopContext";
    case Object::Tag::kNamespace:
      return "Namespace";
    case Object::Tag::kCycler:
      return "Cycler";
    case Object::Tag::kJoiner:
      return "Joiner";
    case Object::Tag::kGenerator:
      return "generator";
    case Object::Tag::kRange:
      return "range";
    case Object::Tag::kView:
      break;
  }
  switch (As<View>(value)->what) {
    case View::What::kKeys:
      return "dict_keys";
    case View::What::kValues:
      return "dict_values";
    case View::What::kItems:
      break;
  }
  return "dict_items";
}

bool Truthy(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNone:
      return false;
    case Value::Kind::kBool:
      return value.boolean();
    case Value::Kind::kInt:
      return value.integer() != 0;
    case Value::Kind::kFloat:
      return value.number() != 0;
    case Value::Kind::kString:
      return !value.text().empty();
    case Value::Kind::kList:
      return !value.items().empty();
    case Value::Kind::kDict:
      return value.dict().size() > 0;
    case Value::Kind::kObject:
      break;
  }
  if (const auto* range = As<Range>(value)) return range->size() > 0;
  if (const auto* view = As<View>(value)) return view->dict.dict().size() > 0;
  return true;
}

bool Equal(Budget& budget, const Value& a, const Value& b) {
  budget.Step();
  if (a.is_number() && b.is_number()) return NumbersEqual(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNone:
      return true;
    case Value::Kind::kString:
      if (a.text().size() == b.text().size()) budget.Step(static_cast<int64_t>(a.text().size() >> 6));
      return a.text() == b.text();
    case Value::Kind::kList:
      return ListsEqual(budget, a.list(), b.list());
    case Value::Kind::kDict:
      return DictsEqual(budget, a.dict(), b.dict());
    case Value::Kind::kObject:
      return ObjectsEqual(budget, a, b);
    default:
      return false;
  }
}

size_t Hash(Budget& budget, const Value& value) {
  budget.Step();
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return 1;
    case Value::Kind::kNone:
      return 2;
    case Value::Kind::kBool:
    case Value::Kind::kInt: {
      const Int i = value.integer();
      if (i == static_cast<Int>(static_cast<int64_t>(i))) return std::hash<int64_t>()(static_cast<int64_t>(i));
      return std::hash<double>()(static_cast<double>(i));
    }
    case Value::Kind::kFloat:
      return HashNumber(value.number());
    case Value::Kind::kString:
      budget.Step(static_cast<int64_t>(value.text().size() >> 6));
      return HashText(value.text());
    case Value::Kind::kList: {
      if (!value.is_tuple()) break;
      size_t hash = 0x345678;
      for (const Value& item : value.items()) hash = hash * 1000003 ^ Hash(budget, item);
      return hash;
    }
    case Value::Kind::kDict:
      break;
    case Value::Kind::kObject:
      if (const auto* range = As<Range>(value)) return static_cast<size_t>(range->size());
      if (As<View>(value) != nullptr) break;
      return std::hash<const void*>()(value.object());
  }
  Fail("unhashable type: '", TypeName(value), "'");
}

bool Less(Budget& budget, const Value& a, const Value& b, std::string_view operation) {
  const auto order = Compare(budget, a, b, operation);
  return order.has_value() && *order < 0;
}

bool LessEqual(Budget& budget, const Value& a, const Value& b, std::string_view operation) {
  const auto order = Compare(budget, a, b, operation);
  return order.has_value() && *order <= 0;
}

void AppendRepr(Budget& budget, std::string& out, const Value& value, int depth) {
  if (depth > base::kMaxTemplateValueDepth) Fail("values are nested too deeply to print");
  const size_t before = out.size();
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      out += "Undefined";
      break;
    case Value::Kind::kNone:
      out += "None";
      break;
    case Value::Kind::kBool:
      out += value.boolean() ? "True" : "False";
      break;
    case Value::Kind::kInt:
      out += IntText(value.integer());
      break;
    case Value::Kind::kFloat:
      out += FloatText(value.number());
      break;
    case Value::Kind::kString:
      if (value.str().markup) out += "Markup(";
      AppendQuoted(out, value.text());
      if (value.str().markup) out += ')';
      break;
    case Value::Kind::kList: {
      const List& list = value.list();
      out += list.tuple ? '(' : '[';
      AppendItems(budget, out, list.items, depth);
      if (list.tuple && list.items.size() == 1) out += ',';
      out += list.tuple ? ')' : ']';
      break;
    }
    case Value::Kind::kDict:
      AppendDict(budget, out, value.dict(), depth);
      break;
    case Value::Kind::kObject:
      AppendObject(budget, out, value, depth);
      break;
  }
  budget.Step(1 + static_cast<int64_t>((out.size() - before) >> 6));
  budget.CheckString(static_cast<int64_t>(out.size()));
}

void AppendStr(Budget& budget, std::string& out, const Value& value) {
  if (value.is_string()) {
    budget.CheckString(static_cast<int64_t>(out.size() + value.text().size()));
    budget.Step(static_cast<int64_t>(value.text().size() >> 6));
    out += value.text();
  } else if (!value.is_undefined()) {
    AppendRepr(budget, out, value);
  }
}

std::string ToStr(Budget& budget, const Value& value) {
  std::string out;
  AppendStr(budget, out, value);
  return out;
}

std::string ToRepr(Budget& budget, const Value& value) {
  std::string out;
  AppendRepr(budget, out, value);
  return out;
}

Value NewString(Budget& budget, std::string text) {
  budget.String(static_cast<int64_t>(text.size() + sizeof(Str)));
  return Value::String(std::move(text));
}

Value NewList(Budget& budget, std::vector<Value> items, bool tuple) {
  budget.Bytes(static_cast<int64_t>(sizeof(List) + items.size() * sizeof(Value)));
  Value value = tuple ? Value::Tuple(std::move(items)) : Value::FromList(std::move(items));
  if (value.depth() > base::kMaxTemplateValueDepth)
    Fail("a list is nested more than ", base::kMaxTemplateValueDepth, " deep");
  return value;
}

Value NewDict(Budget& budget, Dict dict) {
  budget.Bytes(static_cast<int64_t>(sizeof(Dict) + dict.size() * (sizeof(Dict::Entry) + 32)));
  if (dict.depth() > base::kMaxTemplateValueDepth)
    Fail("a dict is nested more than ", base::kMaxTemplateValueDepth, " deep");
  return Value::FromDict(std::move(dict));
}

void RequireDefined(const Value& value) {
  if (value.is_undefined()) Fail(value.undefined_message());
}

}  // namespace vllm::jinja
