// The values that templates work on: Python's None, bool, int, float, str, list, tuple and dict, and jinja2's
// Undefined.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "text/template/failure.h"

namespace vllm::jinja {

// Wide enough for every JSON integer; arithmetic beyond it is an error that says so.
using Int = __int128;

class Value;
class Dict;
class Object;  // Things that live for one rendering: macros, loops, namespaces, generators (objects.h).

struct Str {
  std::string text;     // well-formed UTF-8
  int64_t length = 0;   // code points
  bool markup = false;  // HTML-safe as markupsafe.Markup: joins escape the other side
  bool ascii() const { return length == static_cast<int64_t>(text.size()); }
};

struct List {
  std::vector<Value> items;
  bool tuple = false;
  bool grouped = false;  // groupby's pair, with the attributes grouper and list
  int depth = 1;
};

struct UndefinedInfo {
  std::string message;  // what using it says
};

// Immutable once made, so that copies are cheap and compiled templates can be shared between threads. `Object`s belong
// to one rendering and never leave it.
class Value {
 public:
  enum class Kind : uint8_t { kUndefined, kNone, kBool, kInt, kFloat, kString, kList, kDict, kObject };

  Value() : data_(std::in_place_index<1>) {}  // None
  static Value Undefined(std::string message);
  static Value Bool(bool value);
  static Value Integer(Int value);
  static Value Float(double value);
  static Value String(std::string text);  // text is well-formed UTF-8
  static Value Markup(std::string text);
  static Value FromList(std::vector<Value> items);
  static Value Tuple(std::vector<Value> items);
  static Value Grouped(Value key, Value list);
  static Value FromDict(Dict dict);
  static Value FromObject(Object* object);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is_undefined() const { return kind() == Kind::kUndefined; }
  bool is_none() const { return kind() == Kind::kNone; }
  bool is_bool() const { return kind() == Kind::kBool; }
  bool is_int() const { return kind() == Kind::kInt; }
  bool is_integral() const { return is_bool() || is_int(); }  // bool is an int in Python
  bool is_float() const { return kind() == Kind::kFloat; }
  bool is_number() const { return is_integral() || is_float(); }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_dict() const { return kind() == Kind::kDict; }
  bool is_object() const { return kind() == Kind::kObject; }
  bool is_sequence() const { return kind() == Kind::kList; }  // list or tuple
  bool is_tuple() const { return is_sequence() && list().tuple; }
  bool is_list() const { return is_sequence() && !list().tuple; }

  bool boolean() const { return std::get<2>(data_); }
  Int integer() const { return is_bool() ? Int{boolean()} : std::get<3>(data_); }
  double number() const { return is_float() ? std::get<4>(data_) : static_cast<double>(integer()); }
  const Str& str() const { return *std::get<5>(data_); }
  const std::string& text() const { return str().text; }
  const List& list() const { return *std::get<6>(data_); }
  const std::vector<Value>& items() const { return list().items; }
  const Dict& dict() const { return *std::get<7>(data_); }
  Object* object() const { return std::get<8>(data_); }
  const std::string& undefined_message() const { return std::get<0>(data_)->message; }
  // Containers nest at most kMaxTemplateValueDepth deep; scalars are 0.
  int depth() const;
  // Python's `is`, as far as it can be told from values.
  bool SameAs(const Value& other) const;

 private:
  std::variant<std::shared_ptr<const UndefinedInfo>, std::monostate, bool, Int, double, std::shared_ptr<const Str>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>, Object*>
      data_;
};

// Keeps insertion order. Keys are hashable values; equal keys replace the value and keep the first key, as in Python.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;
  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  int depth() const { return depth_; }
  const Value* Find(std::string_view key) const;
  const Value* Find(Budget& budget, const Value& key) const;  // fails on an unhashable key
  void Set(std::string key, Value value);
  void Set(Budget& budget, Value key, Value value);

 private:
  template <class Same>
  const Value* FindHashed(size_t hash, Same same) const;
  void Insert(size_t hash, Value key, Value value);
  std::vector<Entry> entries_;
  std::unordered_multimap<size_t, uint32_t> index_;  // filled beyond a few entries
  int depth_ = 1;
};

// A JSON value as Python's json.loads gives it. Invalid UTF-8 becomes U+FFFD.
Value FromJson(const base::Json& json);

std::string_view TypeName(const Value& value);  // Python's type(value).__name__
bool Truthy(const Value& value);
bool Equal(Budget& budget, const Value& a, const Value& b);
size_t Hash(Budget& budget, const Value& value);  // fails on lists and dicts
// Python's a < b (or the operator named for the message). Fails where Python raises TypeError.
bool Less(Budget& budget, const Value& a, const Value& b, std::string_view operation = "<");
bool LessEqual(Budget& budget, const Value& a, const Value& b, std::string_view operation = "<=");

void AppendStr(Budget& budget, std::string& out, const Value& value);                  // Python's str()
void AppendRepr(Budget& budget, std::string& out, const Value& value, int depth = 0);  // Python's repr()
std::string ToStr(Budget& budget, const Value& value);
std::string ToRepr(Budget& budget, const Value& value);
Value NewString(Budget& budget, std::string text);
Value NewList(Budget& budget, std::vector<Value> items, bool tuple = false);
Value NewDict(Budget& budget, Dict dict);
// Fails when the value is Undefined, with its message: for operations that jinja2's Undefined refuses.
void RequireDefined(const Value& value);

}  // namespace vllm::jinja
