// The syntax tree of a template. Nodes live in the template's deque and point to each other, so nothing is freed
// recursively.
#pragma once
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "text/template/value.h"

namespace vllm::jinja {

struct FilterDef;
struct TestDef;

enum class NodeKind : uint8_t {
  // expressions                which fields they use
  kConst,         // value
  kName,          // name, access, slot
  kNamespaceRef,  // name.attribute as a target: name, attribute, slot
  kTuple,
  kList,         // list
  kDict,         // list: keys, list2: values
  kConditional,  // a if b else c: a value, b test, c or null
  kFilter,
  kTest,       // a (null: the block's text), name, arguments
  kCall,       // a, arguments
  kKeyword,    // name, a
  kAttribute,  // a, name
  kItem,       // a, b
  kSlice,      // a, b, c or null each
  kConcat,     // list
  kCompare,    // a, list: right sides, operators
  kBinary,     // a, b, operators[0]
  kAnd,
  kOr,  // a, b
  kNot,
  kNegative,
  kPositive,  // a
  // statements
  kData,         // value
  kOutput,       // list
  kFor,          // a target, b iterable, c test, list body, list2 else, flag recursive
  kIf,           // a test, list body, list2 elif nodes, list3 else
  kMacro,        // name, list parameters, list2 defaults, list3 body
  kCallBlock,    // a call, list parameters, list2 defaults, list3 body
  kGeneration,   // list3 body: {% generation %}
  kFilterBlock,  // a filter, list body
  kWith,         // list targets, list2 values, list3 body
  kAssign,       // a target, b value
  kAssignBlock,  // a target, b filter or null, list body
  kBreak,
  kContinue,
};

enum class Operator : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kIn,
  kNotIn,
};

enum class Access : uint8_t { kLoad, kStore, kParameter };

// Where a variable lives: how many functions outwards, and which slot of that one.
struct Slot {
  int16_t outward = 0;
  int32_t index = -1;
};

// What entering a scope does to one of its variables.
struct Load {
  enum class What : uint8_t { kResolve, kAlias, kUndefined };
  What what = What::kUndefined;
  int32_t target = -1;    // slot of the current function
  Slot source = {};       // kAlias
  std::string name = {};  // kResolve: looked up in what the caller gave, then in the globals
};

struct Scope {
  std::vector<Load> loads;
  std::vector<int32_t> variables;  // cleared when the scope is left
};

// A macro, a call block's body, a recursive loop or a loop's filter: code with variables of its own.
struct FunctionCode {
  int32_t slots = 0;
  bool captured = false;            // its variables may be read after it returned
  std::vector<int32_t> parameters;  // slots
  int32_t caller_slot = -1, varargs_slot = -1, kwargs_slot = -1;
  bool explicit_caller = false;
  Scope scope;
};

struct Node {
  NodeKind kind = NodeKind::kConst;
  Access access = Access::kLoad;
  bool flag = false;
  int line = 1;
  int depth = 1;
  std::string name = {};
  std::string attribute = {};
  Value value = {};
  Node* a = nullptr;
  Node* b = nullptr;
  Node* c = nullptr;
  std::vector<Node*> list = {}, list2 = {}, list3 = {};
  std::vector<Operator> operators = {};
  // of calls, filters and tests
  std::vector<Node*> arguments = {}, keywords = {};
  Node* dynamic_arguments = nullptr;
  Node* dynamic_keywords = nullptr;
  // found when scopes are resolved
  const FilterDef* filter = nullptr;
  const TestDef* test = nullptr;
  Slot slot = {};
  int32_t loop_slot = -1;                              // kFor: where `loop` goes, when the body uses it
  Node* filter_target = nullptr;                       // kFor with a test: its target inside the filter function
  std::unique_ptr<FunctionCode> function = {};         // kMacro, kCallBlock, kGeneration; kFor when recursive
  std::unique_ptr<FunctionCode> filter_function = {};  // kFor with a test
  std::unique_ptr<Scope> scope = {}, else_scope = {};
};

struct Tree {
  std::deque<Node> nodes;
  std::vector<Node*> body;
  FunctionCode root;
  std::set<std::string> undeclared;  // variables that it expects to be given
};

// The children of a node in the order in which jinja2 visits them.
template <class F>
void ForEachChild(const Node& node, F visit) {
  const auto one = [&](Node* child) {
    if (child != nullptr) visit(*child);
  };
  const auto all = [&](const std::vector<Node*>& children) {
    for (Node* child : children) visit(*child);
  };
  switch (node.kind) {
    case NodeKind::kDict:
      for (size_t i = 0; i < node.list.size(); ++i) visit(*node.list[i]), visit(*node.list2[i]);
      break;
    case NodeKind::kConditional:
      one(node.b), one(node.a), one(node.c);
      break;
    case NodeKind::kFor:
      one(node.a), one(node.b), all(node.list), all(node.list2), one(node.c);
      break;
    case NodeKind::kFilterBlock:
      all(node.list), one(node.a);
      break;
    case NodeKind::kFilter:
    case NodeKind::kTest:
    case NodeKind::kCall:
      one(node.a), all(node.arguments), all(node.keywords), one(node.dynamic_arguments), one(node.dynamic_keywords);
      break;
    default:
      one(node.a), one(node.b), one(node.c), all(node.list), all(node.list2), all(node.list3);
      break;
  }
}

}  // namespace vllm::jinja
