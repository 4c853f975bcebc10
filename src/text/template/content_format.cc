// A template that loops over a message's content wants parts. Variables that stand for messages or contents are
// followed through assignments, slices, filters and macro parameters, without regard to scopes.
#include "text/template/content_format.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace vllm::jinja {
namespace {

void FindAll(const Node& node, NodeKind kind, std::vector<const Node*>& found) {
  ForEachChild(node, [&](const Node& child) {
    if (child.kind == kind) found.push_back(&child);
    FindAll(child, kind, found);
  });
}

std::vector<const Node*> FindAll(const Tree& tree, NodeKind kind) {
  std::vector<const Node*> found;
  for (const Node* node : tree.body) {
    if (node->kind == kind) found.push_back(node);
    FindAll(*node, kind, found);
  }
  return found;
}

bool IsVariable(const Node& node, const std::string& name) {
  return node.kind == NodeKind::kName && node.access == Access::kLoad && node.name == name;
}

bool IsAttribute(const Node& node, const std::string& name, const std::string& key) {
  if (node.kind == NodeKind::kAttribute) return node.name == key && IsVariable(*node.a, name);
  return node.kind == NodeKind::kItem && IsVariable(*node.a, name) && node.b->kind == NodeKind::kConst &&
         node.b->value.is_string() && node.b->value.text() == key;
}

// The variable, or its key when one is given, behind any filters, tests and slices.
bool Reads(const Node& node, const std::string& name, const std::string& key = {}) {
  if (node.kind == NodeKind::kFilter) return node.a != nullptr && Reads(*node.a, name, key);
  if (node.kind == NodeKind::kTest) return Reads(*node.a, name, key);
  if (node.kind == NodeKind::kItem && node.b->kind == NodeKind::kSlice) return Reads(*node.a, name, key);
  return key.empty() ? IsVariable(node, name) : IsAttribute(node, name, key);
}

bool ReadsAny(const Node& node, const std::vector<std::string>& names, const std::string& key = {}) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return Reads(node, name, key); });
}

// A shape that the analysis does not understand, such as a tuple as a loop's target: the answer is then "string".
struct NotUnderstood {};

const std::string& TargetName(const Node& target) {
  if (target.kind != NodeKind::kName) throw NotUnderstood();
  return target.name;
}

std::vector<std::string> NamesOfMessages(const Tree& tree) {
  std::vector<std::string> names = {"messages"};
  const auto assignments = FindAll(tree, NodeKind::kAssign);
  for (size_t i = 0; i < names.size(); ++i) {
    for (const Node* assignment : assignments) {
      if (!Reads(*assignment->b, std::string(names[i]))) continue;
      const std::string& target = TargetName(*assignment->a);
      if (std::find(names.begin(), names.end(), target) == names.end()) names.push_back(target);
    }
  }
  return names;
}

// The parameters of each macro that are given some message's content.
std::set<std::string> ContentParameters(const Node& macro, const std::vector<const Node*>& calls,
                                        const std::vector<std::string>& messages) {
  std::set<std::string> parameters;
  for (const Node* call : calls) {
    if (call->a->kind != NodeKind::kName || call->a->name != macro.name) continue;
    for (size_t i = 0; i < std::min(call->arguments.size(), macro.list.size()); ++i) {
      if (ReadsAny(*call->arguments[i], messages, "content")) parameters.insert(macro.list[i]->name);
    }
    for (const Node* keyword : call->keywords) {
      const bool known =
          std::any_of(macro.list.begin(), macro.list.end(), [&](const Node* p) { return p->name == keyword->name; });
      if (known && ReadsAny(*keyword->a, messages, "content")) parameters.insert(keyword->name);
    }
  }
  return parameters;
}

ContentFormat Detect(const Tree& tree) {
  const auto sources = NamesOfMessages(tree);
  const auto loops = FindAll(tree, NodeKind::kFor), calls = FindAll(tree, NodeKind::kCall);
  std::vector<std::string> messages;
  for (const Node* loop : loops) {
    if (ReadsAny(*loop->b, sources)) messages.push_back(TargetName(*loop->a));
  }
  std::map<const Node*, std::set<std::string>> content_parameters;  // of the macro around a loop
  for (const Node* macro : FindAll(tree, NodeKind::kMacro)) {
    const auto parameters = ContentParameters(*macro, calls, messages);
    std::vector<const Node*> inside;
    FindAll(*macro, NodeKind::kFor, inside);
    for (const Node* loop : inside) {
      auto& known = content_parameters[loop];
      if (!parameters.empty()) known = parameters;
    }
  }
  for (const Node* loop : loops) {
    bool found = ReadsAny(*loop->b, messages, "content");
    if (!found && loop->b->kind == NodeKind::kName) {
      const auto in_macro = content_parameters.find(loop);
      found =
          in_macro == content_parameters.end() ? loop->b->name == "content" : in_macro->second.contains(loop->b->name);
    }
    if (!found) continue;
    TargetName(*loop->a);
    return ContentFormat::kOpenai;
  }
  return ContentFormat::kString;
}

}  // namespace

ContentFormat DetectContentFormat(const Tree& tree) {
  try {
    return Detect(tree);
  } catch (const NotUnderstood&) {
    return ContentFormat::kString;
  }
}

}  // namespace vllm::jinja
