// Values that live for one rendering: functions, bound methods, namespaces, loops' helpers, generators, ranges, dict
// views.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/value.h"

namespace vllm::jinja {

class Interpreter;

// The arguments of one call.
struct Args {
  std::vector<Value> positional = {};
  std::vector<std::pair<std::string, Value>> keywords = {};
};

class Object {
 public:
  enum class Tag { kFunction, kBound, kMacro, kLoop, kNamespace, kCycler, kJoiner, kGenerator, kRange, kView };
  explicit Object(Tag tag) : tag_(tag) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  Tag tag() const { return tag_; }

 private:
  Tag tag_;
};

// The object as T, or null when the value is something else.
template <class T>
T* As(const Value& value) {
  return value.is_object() && value.object() != nullptr && value.object()->tag() == T::kTag
             ? static_cast<T*>(value.object())
             : nullptr;
}

using FunctionBody = Value (*)(Interpreter&, Args&);
struct Function : Object {
  static constexpr Tag kTag = Tag::kFunction;
  Function(std::string_view n, FunctionBody b) : Object(kTag), name(n), body(b) {}
  std::string_view name;
  FunctionBody body;
};

using MethodBody = Value (*)(Interpreter&, const Value& self, Args&);
struct Method {
  std::string_view name;
  MethodBody body;  // null: the sandbox hides it, because it would change its object
};
struct Bound : Object {
  static constexpr Tag kTag = Tag::kBound;
  Bound(Value s, const Method* m) : Object(kTag), self(std::move(s)), method(m) {}
  Value self;
  const Method* method;
};

struct Namespace : Object {
  static constexpr Tag kTag = Tag::kNamespace;
  Namespace() : Object(kTag) {}
  Dict attributes;
};

struct Cycler : Object {
  static constexpr Tag kTag = Tag::kCycler;
  explicit Cycler(std::vector<Value> i) : Object(kTag), items(std::move(i)) {}
  std::vector<Value> items;
  size_t position = 0;
};

struct Joiner : Object {
  static constexpr Tag kTag = Tag::kJoiner;
  explicit Joiner(Value s) : Object(kTag), separator(std::move(s)) {}
  Value separator;
  bool used = false;
};

// A lazy sequence that can be read once, as Python's generators and iterators.
struct Generator : Object {
  static constexpr Tag kTag = Tag::kGenerator;
  using Next = std::function<bool(Value&)>;
  explicit Generator(Next n) : Object(kTag), next(std::move(n)) {}
  Next next;
};

struct Range : Object {
  static constexpr Tag kTag = Tag::kRange;
  Range(Int a, Int b, Int c) : Object(kTag), start(a), stop(b), step(c) {}
  Int size() const {
    if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
    return start > stop ? (start - stop - 1) / -step + 1 : 0;
  }
  Int start, stop, step;
};

struct View : Object {
  static constexpr Tag kTag = Tag::kView;
  enum class What { kKeys, kValues, kItems };
  View(What w, Value d) : Object(kTag), what(w), dict(std::move(d)) {}
  Value At(size_t index) const;
  What what;
  Value dict;
};

// Reads any iterable value; fails with Python's message on others.
class Iterator {
 public:
  Iterator(Budget& budget, const Value& value);
  bool Next(Value& item);

 private:
  Budget& budget_;
  Value value_;
  size_t position_ = 0;
};

bool IsIterable(const Value& value);
// len(): -1 when the value has none.
int64_t LengthOf(const Value& value);
// Everything an iterable gives.
std::vector<Value> Collect(Budget& budget, const Value& value);
// Python's `item in container`.
bool Contains(Budget& budget, const Value& container, const Value& item);

}  // namespace vllm::jinja
