// Statements of a template: output, conditions, loops, blocks, assignments, macros.
#include "text/template/interpreter.h"

#include <utility>

#include "text/template/pystring.h"

namespace vllm::jinja {
namespace {

// The activation of one call: on the stack, unless code inside it may read it later.
class Frame {
 public:
  Frame(Activation* kept, Activation* parent, const FunctionCode& code) {
    if (kept != nullptr) {
      activation_ = kept;
    } else {
      local_.emplace(parent, code);
      activation_ = &*local_;
    }
  }
  Activation& operator*() { return *activation_; }

 private:
  std::optional<Activation> local_;
  Activation* activation_ = nullptr;
};

}  // namespace

Interpreter::Interpreter(const Tree& tree, const Value& context, const RenderOptions& options)
    : tree_(tree),
      context_(context),
      options_(options),
      budget_(options.steps_max, options.allocated_bytes_max, options.string_bytes_max) {}

Interpreter::Deeper::Deeper(Interpreter& interpreter) : interpreter_(interpreter) {
  if (interpreter_.depth_ >= base::kMaxTemplateRecursion) Fail("maximum recursion depth exceeded");
  ++interpreter_.depth_;
}

std::string Interpreter::Run() {
  Activation root(nullptr, tree_.root);
  Enter(tree_.root.scope, root);
  std::string out;
  Run(tree_.body, root, out);
  return out;
}

Activation* Interpreter::NewActivation(const FunctionCode& code, Activation* parent) {
  budget_.Bytes(static_cast<int64_t>(static_cast<size_t>(code.slots) * sizeof(Value)) + 64);
  if (!code.captured) return nullptr;
  activations_.push_back(std::make_unique<Activation>(parent, code));
  return activations_.back().get();
}

Value& Interpreter::Variable(const Slot& slot, Activation& at) {
  Activation* activation = &at;
  for (int i = 0; i < slot.outward; ++i) activation = activation->parent;
  return activation->slots[static_cast<size_t>(slot.index)];
}

void Interpreter::Enter(const Scope& scope, Activation& at) {
  budget_.Step(static_cast<int64_t>(scope.variables.size()));
  for (const Load& load : scope.loads) {
    Value& target = at.slots[static_cast<size_t>(load.target)];
    switch (load.what) {
      case Load::What::kUndefined:
        target = Value::FromObject(nullptr);
        break;
      case Load::What::kAlias:
        target = Variable(load.source, at);
        break;
      case Load::What::kResolve: {
        const Value* given = context_.dict().Find(load.name);
        target = given != nullptr ? *given : Value::FromObject(FindGlobal(load.name));
        break;
      }
    }
  }
}

void Interpreter::Leave(const Scope& scope, Activation& at) {
  for (const int32_t variable : scope.variables) at.slots[static_cast<size_t>(variable)] = Value::FromObject(nullptr);
}

void Interpreter::Append(std::string& out, const Value& value) {
  AppendStr(budget_, out, value);
  budget_.CheckString(static_cast<int64_t>(out.size()));
}

Interpreter::Flow Interpreter::Run(const std::vector<Node*>& nodes, Activation& at, std::string& out) {
  for (const Node* node : nodes) {
    const Flow flow = Execute(*node, at, out);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::Execute(const Node& node, Activation& at, std::string& out) {
  budget_.Step();
  line_ = node.line;
  if (node.kind == NodeKind::kOutput) {
    Output(node, at, out);
    return Flow::kNormal;
  }
  const Deeper deeper(*this);
  switch (node.kind) {
    case NodeKind::kIf:
      return If(node, at, out);
    case NodeKind::kFor:
      return For(node, at, out);
    case NodeKind::kMacro:
      Variable(node.slot, at) = Value::FromObject(Make<Macro>(node, &at, node.name));
      break;
    case NodeKind::kCallBlock:
      CallBlock(node, at, out);
      break;
    case NodeKind::kGeneration: {
      Frame frame(NewActivation(*node.function, &at), &at, *node.function);
      Enter(node.function->scope, *frame);
      Run(node.list3, *frame, out);
      break;
    }
    case NodeKind::kFilterBlock:
    case NodeKind::kAssignBlock:
      return CaptureBlock(node, at, out);
    case NodeKind::kWith:
      return With(node, at, out);
    case NodeKind::kAssign: {
      RequireNamespaces(*node.a, at);
      const Value value = Evaluate(*node.b, at);
      Assign(*node.a, at, value);
      break;
    }
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
    default:
      CHECK(false, "not a statement: ", static_cast<int>(node.kind));
  }
  return Flow::kNormal;
}

void Interpreter::Output(const Node& node, Activation& at, std::string& out) {
  for (const Node* child : node.list) {
    if (child->kind == NodeKind::kData) {
      Append(out, child->value);
    } else {
      Append(out, Evaluate(*child, at));
    }
  }
}

Interpreter::Flow Interpreter::If(const Node& node, Activation& at, std::string& out) {
  if (Truthy(Evaluate(*node.a, at))) return Run(node.list, at, out);
  for (const Node* branch : node.list2) {
    if (Truthy(Evaluate(*branch->a, at))) return Run(branch->list, at, out);
  }
  return Run(node.list3, at, out);
}

Interpreter::Flow Interpreter::For(const Node& node, Activation& at, std::string& out) {
  const Value iterable = Evaluate(*node.b, at);
  if (!node.flag) return ForOver(node, at, iterable, 0, nullptr, out);
  std::string text;
  Frame frame(NewActivation(*node.function, &at), &at, *node.function);
  ForOver(node, *frame, iterable, 0, &at, text);
  Append(out, Value::String(std::move(text)));
  return Flow::kNormal;
}

Value Interpreter::CallLoop(Loop& loop, const Value& iterable) {
  if (loop.recursive == nullptr) Fail("The loop must have the 'recursive' marker to be called recursively.");
  const Deeper deeper(*this);
  const FunctionCode& code = *loop.recursive->function;
  std::string text;
  Frame frame(NewActivation(code, loop.parent), loop.parent, code);
  ForOver(*loop.recursive, *frame, iterable, loop.depth0 + 1, loop.parent, text);
  return NewString(budget_, std::move(text));
}

// The items of a loop that pass its `if`, found one at a time.
Value Interpreter::Filtered(const Node& node, Activation& at, Value iterable) {
  struct State {
    Activation* activation;
    Value iterable;
    Iterator source;
  };
  Activation* activation = NewActivation(*node.filter_function, &at);
  if (activation == nullptr) {  // it is read whenever the loop asks for an item
    activations_.push_back(std::make_unique<Activation>(&at, *node.filter_function));
    activation = activations_.back().get();
  }
  Enter(node.filter_function->scope, *activation);
  auto state = std::make_shared<State>(State{activation, iterable, Iterator(budget_, iterable)});
  return MakeGenerator(*this, [this, &node, state](Value& item) {
    while (state->source.Next(item)) {
      Assign(*node.filter_target, *state->activation, item);
      if (Truthy(Evaluate(*node.c, *state->activation))) return true;
    }
    return false;
  });
}

Interpreter::Flow Interpreter::ForOver(const Node& node, Activation& at, Value iterable, Int depth,
                                       Activation* recursion_parent, std::string& out) {
  if (node.c != nullptr) iterable = Filtered(node, at, std::move(iterable));
  Loop* loop = nullptr;
  std::optional<Iterator> plain;
  if (node.loop_slot >= 0) {
    loop = Make<Loop>(budget_, iterable, depth);
    if (node.flag) loop->recursive = &node;
    loop->parent = recursion_parent;
  } else {
    plain.emplace(budget_, iterable);
  }
  bool completed = false;  // an else block runs unless some pass came to its end
  for (Value item; loop != nullptr ? loop->Next(budget_, item) : plain->Next(item);) {
    Assign(*node.a, at, item);
    if (loop != nullptr) at.slots[static_cast<size_t>(node.loop_slot)] = Value::FromObject(loop);
    Enter(*node.scope, at);
    const Flow flow = Run(node.list, at, out);
    if (flow == Flow::kBreak) break;
    if (flow == Flow::kNormal) completed = true;
  }
  Leave(*node.scope, at);
  if (node.else_scope == nullptr || completed) return Flow::kNormal;
  Enter(*node.else_scope, at);
  const Flow flow = Run(node.list2, at, out);
  Leave(*node.else_scope, at);
  return flow;
}

// {% filter %} and {% set %}…{% endset %}: the block's text goes through filters, then out or into the target.
Interpreter::Flow Interpreter::CaptureBlock(const Node& node, Activation& at, std::string& out) {
  const bool is_set = node.kind == NodeKind::kAssignBlock;
  if (is_set) RequireNamespaces(*node.a, at);
  Enter(*node.scope, at);
  std::string text;
  const Flow flow = Run(node.list, at, text);
  if (flow != Flow::kNormal) return flow;
  const Node* filter = is_set ? node.b : node.a;
  Value result;
  if (filter != nullptr) {
    const std::string* outer = std::exchange(block_text_, &text);
    result = Evaluate(*filter, at);
    block_text_ = outer;
  } else {
    result = NewString(budget_, std::move(text));
  }
  if (is_set) {
    Assign(*node.a, at, result);
  } else {
    Append(out, result);
  }
  Leave(*node.scope, at);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::With(const Node& node, Activation& at, std::string& out) {
  Enter(*node.scope, at);
  for (size_t i = 0; i < node.list.size(); ++i) Assign(*node.list[i], at, Evaluate(*node.list2[i], at));
  const Flow flow = Run(node.list3, at, out);
  Leave(*node.scope, at);
  return flow;
}

void Interpreter::CallBlock(const Node& node, Activation& at, std::string& out) {
  const Value caller = Value::FromObject(Make<Macro>(node, &at, std::string()));
  Append(out, CallNode(*node.a, at, &caller));
}

void Interpreter::RequireNamespaces(const Node& target, Activation& at) {
  if (target.kind == NodeKind::kNamespaceRef && As<Namespace>(Variable(target.slot, at)) == nullptr) {
    Fail("cannot assign attribute on non-namespace object");
  }
  for (const Node* item : target.list) RequireNamespaces(*item, at);
}

void Interpreter::Assign(const Node& target, Activation& at, const Value& value) {
  if (target.kind == NodeKind::kName) {
    Variable(target.slot, at) = value;
    return;
  }
  if (target.kind == NodeKind::kNamespaceRef) {
    budget_.Bytes(64);
    Dict& attributes = As<Namespace>(Variable(target.slot, at))->attributes;
    attributes.Set(target.attribute, value);
    return;
  }
  if (!IsIterable(value)) Fail("cannot unpack non-iterable ", TypeName(value), " object");
  const std::vector<Value> items = Collect(budget_, value);
  if (items.size() < target.list.size()) {
    Fail("not enough values to unpack (expected ", target.list.size(), ", got ", items.size(), ")");
  }
  if (items.size() > target.list.size()) Fail("too many values to unpack (expected ", target.list.size(), ")");
  for (size_t i = 0; i < items.size(); ++i) Assign(*target.list[i], at, items[i]);
}

Value Interpreter::CallMacro(const Macro& macro, Args& args) {
  const Deeper deeper(*this);
  const Node& node = macro.node;
  const FunctionCode& code = *node.function;
  const size_t count = code.parameters.size();
  Frame frame(NewActivation(code, macro.parent), macro.parent, code);
  Activation& at = *frame;
  const auto slot = [&](int32_t index) -> Value& { return at.slots[static_cast<size_t>(index)]; };
  const auto take = [&](const std::string& name, Value& into) {
    for (auto it = args.keywords.begin(); it != args.keywords.end(); ++it) {
      if (it->first != name) continue;
      into = std::move(it->second);
      args.keywords.erase(it);
      return true;
    }
    return false;
  };
  const size_t given = std::min(count, args.positional.size());
  bool found_caller = given == count && code.explicit_caller;
  for (size_t i = 0; i < count; ++i) {
    if (i < given) {
      slot(code.parameters[i]) = args.positional[i];
      continue;
    }
    take(node.list[i]->name, slot(code.parameters[i]));
    if (node.list[i]->name == "caller") found_caller = true;
  }
  if (code.caller_slot >= 0 && !found_caller) {
    Value caller;
    if (!take("caller", caller) || caller.is_none()) caller = Value::Undefined("No caller defined");
    slot(code.caller_slot) = caller;
  }
  if (code.kwargs_slot >= 0) {
    Dict keywords;
    for (auto& [name, value] : args.keywords) keywords.Set(name, std::move(value));
    slot(code.kwargs_slot) = NewDict(budget_, std::move(keywords));
  } else if (!args.keywords.empty()) {
    Fail("macro '", macro.name, "' takes no keyword argument '", args.keywords[0].first, "'");
  }
  if (code.varargs_slot >= 0) {
    slot(code.varargs_slot) =
        NewList(budget_, {args.positional.begin() + static_cast<long>(given), args.positional.end()}, true);
  } else if (args.positional.size() > count) {
    Fail("macro '", macro.name, "' takes not more than ", count, " argument(s)");
  }
  Enter(code.scope, at);
  for (size_t i = 0; i < count; ++i) {
    Value& parameter = slot(code.parameters[i]);
    if (!IsMissing(parameter)) continue;
    const size_t without_default = count - node.list2.size();
    Value value = i < without_default ? Value::Undefined("parameter '" + node.list[i]->name + "' was not provided")
                                      : Evaluate(*node.list2[i - without_default], at);
    slot(code.parameters[i]) = std::move(value);
  }
  std::string text;
  Run(node.list3, at, text);
  return NewString(budget_, std::move(text));
}

}  // namespace vllm::jinja
