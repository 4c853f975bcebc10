// Runs a template's tree. One interpreter is one rendering, used by one thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "text/template/ast.h"
#include "text/template/builtins.h"
#include "text/template/jinja.h"
#include "text/template/macro.h"

namespace vllm::jinja {

class Interpreter {
 public:
  // One evaluation inside another; fails beyond kMaxTemplateRecursion.
  class Deeper {
   public:
    explicit Deeper(Interpreter& interpreter);
    ~Deeper() { --interpreter_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Interpreter& interpreter_;
  };

  Interpreter(const Tree& tree, const Value& context, const RenderOptions& options);
  std::string Run();  // throws Failure; line() is where

  Budget& budget() { return budget_; }
  int line() const { return line_; }
  const RenderOptions& options() const { return options_; }

  Value Attribute(const Value& object, const std::string& name);
  Value Item(const Value& object, const Value& key);
  Value Call(const Value& callee, Args& args);
  Value CallMacro(const Macro& macro, Args& args);
  Value CallLoop(Loop& loop, const Value& iterable);
  Value ApplyFilter(const std::string& name, const Value& value, const Args& args);
  bool ApplyTest(const std::string& name, const Value& value, const Args& args);

  // Makes an object that lives until the rendering ends.
  template <class T, class... Parts>
  T* Make(Parts&&... parts) {
    budget_.Bytes(static_cast<int64_t>(sizeof(T)) + 64);
    auto owned = std::make_unique<T>(std::forward<Parts>(parts)...);
    T* object = owned.get();
    objects_.push_back(std::move(owned));
    return object;
  }

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  // Statements.
  Flow Run(const std::vector<Node*>& nodes, Activation& at, std::string& out);
  Flow Execute(const Node& node, Activation& at, std::string& out);
  void Output(const Node& node, Activation& at, std::string& out);
  Flow If(const Node& node, Activation& at, std::string& out);
  Flow For(const Node& node, Activation& at, std::string& out);
  Flow ForOver(const Node& node, Activation& at, Value iterable, Int depth, Activation* recursion_parent,
               std::string& out);
  Flow CaptureBlock(const Node& node, Activation& at, std::string& out);
  Flow With(const Node& node, Activation& at, std::string& out);
  void CallBlock(const Node& node, Activation& at, std::string& out);
  Value Filtered(const Node& node, Activation& at, Value iterable);
  void Assign(const Node& target, Activation& at, const Value& value);
  void RequireNamespaces(const Node& target, Activation& at);
  void Enter(const Scope& scope, Activation& at);
  void Leave(const Scope& scope, Activation& at);
  Value& Variable(const Slot& slot, Activation& at);
  Activation* NewActivation(const FunctionCode& code, Activation* parent);
  void Append(std::string& out, const Value& value);

  // Expressions.
  Value Evaluate(const Node& node, Activation& at);
  Value EvaluateOther(const Node& node, Activation& at);
  Value Name(const Node& node, Activation& at);
  Value Collection(const Node& node, Activation& at);
  Value Conditional(const Node& node, Activation& at);
  Value Filter(const Node& node, Activation& at);
  Value ApplyFilterNode(const Node& node, Activation& at, const Value& value);
  Value Test(const Node& node, Activation& at);
  Value CallNode(const Node& node, Activation& at, const Value* caller);
  Value ItemNode(const Node& node, Activation& at);
  Value SliceOf(const Value& value, const Node& slice, Activation& at);
  Value Concat(const Node& node, Activation& at);
  Value Compare(const Node& node, Activation& at);
  bool CompareOnce(Operator op, const Value& a, const Value& b);
  Value Binary(const Node& node, Activation& at);
  Value Sign(const Node& node, Activation& at);
  Args EvaluateArguments(const Node& node, Activation& at);

  const Tree& tree_;
  const Value& context_;
  const RenderOptions& options_;
  Budget budget_;
  int depth_ = 0;
  int line_ = 1;
  const std::string* block_text_ = nullptr;  // what a filter without a value filters
  std::vector<std::unique_ptr<Object>> objects_;
  std::vector<std::unique_ptr<Activation>> activations_;  // those that closures may still read
};

// Arithmetic as Python's operators (operators.cc).
Value BinaryOperation(Budget& budget, Operator op, const Value& a, const Value& b);

}  // namespace vllm::jinja
