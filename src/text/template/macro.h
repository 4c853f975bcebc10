// The objects that hold template code at work: variables of a running function, macros, and the `loop` of a for block.
#pragma once
#include <string>
#include <vector>

#include "text/template/ast.h"
#include "text/template/objects.h"

namespace vllm::jinja {

// The variables of one call. A variable that holds nothing is an Object value without an object.
struct Activation {
  Activation(Activation* outer, const FunctionCode& code)
      : parent(outer), slots(static_cast<size_t>(code.slots), Value::FromObject(nullptr)) {}
  Activation* parent;
  std::vector<Value> slots;
};
inline bool IsMissing(const Value& value) { return value.is_object() && value.object() == nullptr; }

struct Macro : Object {
  static constexpr Tag kTag = Tag::kMacro;
  Macro(const Node& n, Activation* p, std::string m) : Object(kTag), node(n), parent(p), name(std::move(m)) {}
  const Node& node;  // kMacro, kCallBlock or kGeneration
  Activation* parent;
  std::string name;  // empty for call blocks
};

struct Loop : Object {
  static constexpr Tag kTag = Tag::kLoop;
  Loop(Budget& budget, Value iterable, Int d)
      : Object(kTag), depth0(d), iterable_(std::move(iterable)), source_(budget, iterable_) {}
  // Moves to the next item; false at the end.
  bool Next(Budget& budget, Value& item);
  // The item after the current one, or null.
  const Value* Peek();
  Int Length(Budget& budget);

  Int index0 = -1;
  Int depth0;
  Value current = {};
  Value previous = {};
  bool changed_before = false;
  Value changed_value = {};
  const Node* recursive = nullptr;  // the for node, when it may be called
  Activation* parent = nullptr;

 private:
  Value iterable_;
  Iterator source_;
  bool peeked_ = false, ended_ = false;
  Value after_ = {};
  Int length_ = -1;
  // What length() read ahead from a generator.
  std::vector<Value> ahead_ = {};
  size_t ahead_used_ = 0;
  bool Pull(Value& item);
};

}  // namespace vllm::jinja
