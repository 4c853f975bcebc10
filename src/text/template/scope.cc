// Gives every name of a template its variable. Follows jinja2's rules: which names a block sees, shares or shadows is
// decided before rendering, per scope; macros and loop filters are functions that see the variables around them.
#include <map>
#include <set>
#include <string>

#include "text/template/builtins.h"
#include "text/template/parser.h"

namespace vllm::jinja {
namespace {

template <class... Parts>
[[noreturn]] void Error(const Node& node, const Parts&... parts) {
  Fail("line ", node.line, ": ", parts...);
}

constexpr int64_t kMaxCopiedVariables = 2'000'000;

// The variables of one scope. A variable is known by its name and the level of the scope that made it.
struct Symbols {
  enum class From { kParameter, kResolve, kAlias, kUndefined };
  struct Source {
    From from = From::kUndefined;
    int level = 0;  // kAlias: of the outer variable
  };

  explicit Symbols(const Symbols* outer)
      : parent(outer),
        level(outer == nullptr ? 0 : outer->level + 1),
        copied(outer == nullptr ? nullptr : outer->copied) {}

  // The level of the variable that the name means here, or -1.
  int Find(const std::string& name) const {
    for (const Symbols* at = this; at != nullptr; at = at->parent) {
      if (at->loads.contains(name)) return at->level;
    }
    return -1;
  }
  void Load(const std::string& name) {
    if (Find(name) < 0) loads[name] = {.from = From::kResolve};
  }
  void Store(const std::string& name) {
    stores.insert(name);
    if (loads.contains(name)) return;
    const int outer = parent == nullptr ? -1 : parent->Find(name);
    loads[name] = outer >= 0 ? Source{.from = From::kAlias, .level = outer} : Source{.from = From::kUndefined};
  }
  void Parameter(const std::string& name) {
    stores.insert(name);
    loads[name] = {.from = From::kParameter};
  }
  // Joins what the branches of an if did: a name that only some of them set keeps its outer meaning in the others.
  void Join(const std::vector<Symbols>& branches) {
    std::set<std::string> fresh;
    for (const Symbols& branch : branches) {
      for (const auto& name : branch.stores) {
        if (!stores.contains(name)) fresh.insert(name);
      }
    }
    for (const Symbols& branch : branches) {
      for (const auto& [name, source] : branch.loads) loads[name] = source;
      stores.insert(branch.stores.begin(), branch.stores.end());
    }
    for (const auto& name : fresh) {
      const int outer = parent == nullptr ? -1 : parent->Find(name);
      loads[name] = outer >= 0 ? Source{.from = From::kAlias, .level = outer} : Source{.from = From::kResolve};
    }
  }

  const Symbols* parent;
  int level;
  int64_t* copied = nullptr;  // how many variables the branches of all ifs were given so far
  std::map<std::string, Source> loads;
  std::set<std::string> stores;
};

// Records in `symbols` what a node inside a scope does to names. Nested scopes are not entered.
void Inspect(Symbols& symbols, const Node& node, bool as_parameter = false) {
  const auto all = [&](Symbols& into, const std::vector<Node*>& nodes) {
    for (const Node* child : nodes) Inspect(into, *child);
  };
  switch (node.kind) {
    case NodeKind::kName:
      if (as_parameter || node.access == Access::kParameter) {
        symbols.Parameter(node.name);
      } else if (node.access == Access::kStore) {
        symbols.Store(node.name);
      } else {
        symbols.Load(node.name);
      }
      return;
    case NodeKind::kNamespaceRef:
      symbols.Load(node.name);
      return;
    case NodeKind::kIf: {
      Inspect(symbols, *node.a);
      // Each branch starts with a copy of the scope; a template of many branches and many names could take minutes.
      *symbols.copied += static_cast<int64_t>(symbols.loads.size());
      if (*symbols.copied > kMaxCopiedVariables)
        Error(node, "the template has too many conditions with too many variables");
      std::vector<Symbols> branches(3, symbols);
      all(branches[0], node.list);
      all(branches[1], node.list2);
      all(branches[2], node.list3);
      symbols.Join(branches);
      return;
    }
    case NodeKind::kMacro:
      symbols.Store(node.name);
      return;
    case NodeKind::kAssign:
      Inspect(symbols, *node.b);
      Inspect(symbols, *node.a);
      return;
    case NodeKind::kFor:
      Inspect(symbols, *node.b);
      return;
    case NodeKind::kCallBlock:
    case NodeKind::kFilterBlock:
    case NodeKind::kAssignBlock:
      Inspect(symbols, *node.a);
      return;
    case NodeKind::kGeneration:
      return;
    case NodeKind::kWith:
      all(symbols, node.list2);
      return;
    default:
      ForEachChild(node, [&](const Node& child) { Inspect(symbols, child, as_parameter); });
  }
}

void InspectAll(Symbols& symbols, const std::vector<Node*>& nodes) {
  for (const Node* node : nodes) Inspect(symbols, *node);
}

// Which of the names are read before anything sets them, macros' and loops' bodies included.
void FindUndeclared(const Node& node, std::set<std::string>& names, std::set<std::string>& found) {
  if (node.kind == NodeKind::kName) {
    if (node.access == Access::kLoad && names.contains(node.name)) {
      found.insert(node.name);
    } else {
      names.erase(node.name);
    }
    return;
  }
  ForEachChild(node, [&](const Node& child) { FindUndeclared(child, names, found); });
}

std::set<std::string> Undeclared(const std::vector<Node*>& nodes, std::set<std::string> names) {
  std::set<std::string> found;
  for (const Node* node : nodes) FindUndeclared(*node, names, found);
  return found;
}

void RefuseLoopTarget(const Node& node) {
  if (node.kind == NodeKind::kName && node.access == Access::kStore && node.name == "loop") {
    Error(node, "Can't assign to special loop variable in for-loop target");
  }
  ForEachChild(node, RefuseLoopTarget);
}

class Resolver {
 public:
  explicit Resolver(Tree& tree) : tree_(tree) {}
  void Run() {
    const Within within(*this, tree_.root, 0);
    Symbols symbols(nullptr);
    int64_t copied = 0;
    symbols.copied = &copied;
    InspectAll(symbols, tree_.body);
    Enter(tree_.root.scope, symbols);
    Statements(tree_.body, symbols, false);
  }

 private:
  struct FunctionScope {
    FunctionCode* code;
    int base_level;
    std::map<std::pair<int, std::string>, int32_t> slots;
  };
  // The code of a function is being resolved.
  class Within {
   public:
    Within(Resolver& resolver, FunctionCode& code, int base_level) : functions_(resolver.functions_) {
      if (!functions_.empty()) functions_.back().code->captured = true;
      functions_.push_back({.code = &code, .base_level = base_level, .slots = {}});
    }
    ~Within() { functions_.pop_back(); }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    std::vector<FunctionScope>& functions_;
  };

  Slot SlotOf(int level, const std::string& name) {
    size_t at = functions_.size() - 1;
    while (functions_[at].base_level > level) --at;
    FunctionScope& function = functions_[at];
    const auto [it, fresh] = function.slots.try_emplace({level, name}, function.code->slots);
    if (fresh) ++function.code->slots;
    return {.outward = static_cast<int16_t>(functions_.size() - 1 - at), .index = it->second};
  }
  Slot SlotOf(const Symbols& symbols, const std::string& name) {
    const int level = symbols.Find(name);
    CHECK(level >= 0, "the name '", name, "' was not inspected");
    return SlotOf(level, name);
  }

  void Enter(Scope& scope, const Symbols& symbols) {
    for (const auto& [name, source] : symbols.loads) {
      const int32_t target = SlotOf(symbols.level, name).index;
      scope.variables.push_back(target);
      switch (source.from) {
        case Symbols::From::kParameter:
          break;
        case Symbols::From::kResolve:
          if (name == "self") Refuse("the variable `self` is not supported: a chat template is one text");
          if (FindGlobal(name) == nullptr) tree_.undeclared.insert(name);
          scope.loads.push_back({.what = Load::What::kResolve, .target = target, .name = name});
          break;
        case Symbols::From::kAlias:
          scope.loads.push_back({.what = Load::What::kAlias, .target = target, .source = SlotOf(source.level, name)});
          break;
        case Symbols::From::kUndefined:
          scope.loads.push_back({.what = Load::What::kUndefined, .target = target});
          break;
      }
    }
  }

  void Statements(const std::vector<Node*>& nodes, const Symbols& symbols, bool soft) {
    for (Node* node : nodes) Statement(*node, symbols, soft);
  }
  void Expressions(const std::vector<Node*>& nodes, const Symbols& symbols, bool soft) {
    for (Node* node : nodes) Expression(*node, symbols, soft);
  }
  void Statement(Node& node, const Symbols& symbols, bool soft);
  void Expression(Node& node, const Symbols& symbols, bool soft);
  void For(Node& node, const Symbols& outer, bool soft);
  void ForFilter(Node& node, const Symbols& outer, const Symbols& loop);
  void Function(Node& node, const Symbols& outer);
  Node* Clone(const Node& target);

  Tree& tree_;
  std::vector<FunctionScope> functions_;
};

void Resolver::Statement(Node& node, const Symbols& symbols, bool soft) {
  switch (node.kind) {
    case NodeKind::kFor:
      For(node, symbols, soft);
      return;
    case NodeKind::kIf:
      Expression(*node.a, symbols, true);
      Statements(node.list, symbols, true);
      Statements(node.list2, symbols, true);
      Statements(node.list3, symbols, true);
      return;
    case NodeKind::kMacro:
      Function(node, symbols);
      node.slot = SlotOf(symbols, node.name);
      return;
    case NodeKind::kCallBlock:
      Function(node, symbols);
      Expression(*node.a, symbols, soft);
      return;
    case NodeKind::kGeneration:
      Function(node, symbols);
      return;
    case NodeKind::kFilterBlock:
    case NodeKind::kAssignBlock: {
      Symbols inner(&symbols);
      InspectAll(inner, node.list);
      Node* filter = node.kind == NodeKind::kFilterBlock ? node.a : node.b;
      if (filter != nullptr) Inspect(inner, *filter);
      node.scope = std::make_unique<Scope>();
      Enter(*node.scope, inner);
      Statements(node.list, inner, false);
      if (filter != nullptr) Expression(*filter, inner, false);
      if (node.kind == NodeKind::kAssignBlock) Expression(*node.a, symbols, soft);
      return;
    }
    case NodeKind::kWith: {
      Symbols inner(&symbols);
      InspectAll(inner, node.list);
      InspectAll(inner, node.list3);
      node.scope = std::make_unique<Scope>();
      Enter(*node.scope, inner);
      Expressions(node.list, inner, false);
      Expressions(node.list2, symbols, soft);
      Statements(node.list3, inner, false);
      return;
    }
    default:
      Expression(node, symbols, soft);
  }
}

void Resolver::Expression(Node& node, const Symbols& symbols, bool soft) {
  switch (node.kind) {
    case NodeKind::kName:
    case NodeKind::kNamespaceRef:
      node.slot = SlotOf(symbols, node.name);
      return;
    case NodeKind::kFilter:
      node.filter = FindFilter(node.name);
      if (node.filter == nullptr) {
        if (IsRefusedFilter(node.name)) Refuse("line ", node.line, ": the filter '", node.name, "' is not supported");
        if (!soft) Error(node, "No filter named '", node.name, "'.");
      }
      break;
    case NodeKind::kTest:
      node.test = FindTest(node.name);
      if (node.test == nullptr && !soft) Error(node, "No test named '", node.name, "'.");
      break;
    case NodeKind::kConditional:
      soft = true;
      break;
    default:
      break;
  }
  ForEachChild(node, [&](const Node& child) { Expression(const_cast<Node&>(child), symbols, soft); });
}

void Resolver::For(Node& node, const Symbols& outer, bool soft) {
  const bool uses_loop = node.flag || Undeclared(node.list, {"loop"}).contains("loop");
  RefuseLoopTarget(node);
  Symbols loop(&outer), otherwise(&outer);
  if (uses_loop) loop.Parameter("loop");
  Inspect(loop, *node.a, true);
  InspectAll(loop, node.list);
  InspectAll(otherwise, node.list2);
  Expression(*node.b, outer, soft);
  const auto resolve = [&] {
    if (node.c != nullptr) ForFilter(node, outer, loop);
    if (uses_loop) node.loop_slot = SlotOf(loop.level, "loop").index;
    Expression(*node.a, loop, false);
    node.scope = std::make_unique<Scope>();
    Enter(*node.scope, loop);
    Statements(node.list, loop, false);
    if (node.list2.empty()) return;
    node.else_scope = std::make_unique<Scope>();
    Enter(*node.else_scope, otherwise);
    Statements(node.list2, otherwise, false);
  };
  if (!node.flag) {
    resolve();
    return;
  }
  node.function = std::make_unique<FunctionCode>();
  const Within within(*this, *node.function, loop.level);
  resolve();
}

void Resolver::ForFilter(Node& node, const Symbols& outer, const Symbols& loop) {
  Symbols test(&outer);
  Inspect(test, *node.a, true);
  Inspect(test, *node.c);
  node.filter_function = std::make_unique<FunctionCode>();
  const Within within(*this, *node.filter_function, test.level);
  Enter(node.filter_function->scope, test);
  node.filter_target = Clone(*node.a);
  Expression(*node.filter_target, loop, false);
  Expression(*node.c, test, false);
}

Node* Resolver::Clone(const Node& target) {
  tree_.nodes.push_back({});
  Node& copy = tree_.nodes.back();
  copy.kind = target.kind;
  copy.access = target.access;
  copy.line = target.line;
  copy.name = target.name;
  for (const Node* item : target.list) {
    Node* child = Clone(*item);
    copy.list.push_back(child);
  }
  return &copy;
}

// The parameters and the body of a macro, a call block or a generation block.
void Resolver::Function(Node& node, const Symbols& outer) {
  Symbols symbols(&outer);
  const auto inspect = [&] {
    InspectAll(symbols, node.list);
    InspectAll(symbols, node.list2);
    InspectAll(symbols, node.list3);
  };
  inspect();
  node.function = std::make_unique<FunctionCode>();
  FunctionCode& code = *node.function;
  const auto undeclared = Undeclared(node.list3, {"caller", "kwargs", "varargs"});
  std::set<std::string> parameters;
  for (size_t i = 0; i < node.list.size(); ++i) {
    const std::string& name = node.list[i]->name;
    if (!parameters.insert(name).second) Error(node, "duplicate argument '", name, "' in function definition");
    if (name != "caller") continue;
    code.explicit_caller = true;
    if (undeclared.contains("caller") && i < node.list.size() - node.list2.size()) {
      Error(node, "the special \"caller\" argument must be omitted or be given a default.");
    }
  }
  const auto special = [&](const std::string& name) {
    const bool wanted = undeclared.contains(name) && !parameters.contains(name);
    if (wanted) symbols.Parameter(name);
    return wanted;
  };
  const bool caller = special("caller"), kwargs = special("kwargs"), varargs = special("varargs");
  inspect();
  const Within within(*this, code, symbols.level);
  for (const Node* parameter : node.list) code.parameters.push_back(SlotOf(symbols.level, parameter->name).index);
  if (caller) code.caller_slot = SlotOf(symbols.level, "caller").index;
  if (kwargs) code.kwargs_slot = SlotOf(symbols.level, "kwargs").index;
  if (varargs) code.varargs_slot = SlotOf(symbols.level, "varargs").index;
  Enter(code.scope, symbols);
  Expressions(node.list, symbols, false);
  Expressions(node.list2, symbols, false);
  Statements(node.list3, symbols, false);
}

}  // namespace

void ResolveNames(Tree& tree) { Resolver(tree).Run(); }

}  // namespace vllm::jinja
