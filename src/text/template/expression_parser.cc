// Expressions of the template language, with jinja2's precedence.
#include "text/template/parser_impl.h"

namespace vllm::jinja {

Node* Parser::ParseTuple(const TupleOptions& options) {
  const Nested nested(*this);
  const int line = Current().line;
  const auto at_end = [&] {
    const TokenKind kind = Current().kind;
    return kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd || AtOperator(")") ||
           (!options.end_name.empty() && AtName(options.end_name));
  };
  std::vector<Node*> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) ExpectOperator(",");
    if (at_end()) break;
    items.push_back(options.simplified ? Primary(options.with_namespace) : Expression(options.conditional));
    if (!AtOperator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return items[0];
    if (!options.parentheses) Error(line, "Expected an expression, got '", Describe(Current()), "'");
  }
  Node* node = New(NodeKind::kTuple, line);
  node->list = std::move(items);
  return Done(node);
}

Node* Parser::Expression(bool conditional) { return conditional ? Conditional() : OrExpression(); }

Node* Parser::Conditional() {
  const Nested nested(*this);
  Node* value = OrExpression();
  while (AtName("if")) {
    Node* node = New(NodeKind::kConditional, Next().line);
    node->a = value;
    node->b = OrExpression();
    if (SkipName("else")) node->c = Conditional();
    value = Done(node);
  }
  return value;
}

Node* Parser::OrExpression() {
  Node* left = AndExpression();
  while (AtName("or")) {
    Node* node = New(NodeKind::kOr, Next().line);
    node->a = left;
    node->b = AndExpression();
    left = Done(node);
  }
  return left;
}

Node* Parser::AndExpression() {
  Node* left = NotExpression();
  while (AtName("and")) {
    Node* node = New(NodeKind::kAnd, Next().line);
    node->a = left;
    node->b = NotExpression();
    left = Done(node);
  }
  return left;
}

Node* Parser::NotExpression() {
  if (!AtName("not")) return Comparison();
  const Nested nested(*this);
  Node* node = New(NodeKind::kNot, Next().line);
  node->a = NotExpression();
  return Done(node);
}

bool Parser::ComparisonOperator(Operator& op) {
  const Token& token = Current();
  if (token.kind == TokenKind::kOperator) {
    constexpr std::pair<std::string_view, Operator> kOperators[] = {{"==", Operator::kEq}, {"!=", Operator::kNe},
                                                                    {"<", Operator::kLt},  {"<=", Operator::kLe},
                                                                    {">", Operator::kGt},  {">=", Operator::kGe}};
    for (const auto& [text, which] : kOperators) {
      if (token.text != text) continue;
      op = which;
      Next();
      return true;
    }
    return false;
  }
  if (SkipName("in")) {
    op = Operator::kIn;
    return true;
  }
  if (AtName("not") && IsName(Look(), "in")) {
    Next();
    Next();
    op = Operator::kNotIn;
    return true;
  }
  return false;
}

Node* Parser::Comparison() {
  const int line = Current().line;
  Node* left = Arithmetic(0);
  Node* node = nullptr;
  Operator op = Operator::kEq;
  while (ComparisonOperator(op)) {
    if (node == nullptr) {
      node = New(NodeKind::kCompare, line);
      node->a = left;
    }
    node->operators.push_back(op);
    node->list.push_back(Arithmetic(0));
  }
  return node == nullptr ? left : Done(node);
}

// Levels: 0 + -, 1 ~, 2 * / // %, 3 **. All associate to the left, ** too.
Node* Parser::Arithmetic(int level) {
  struct Rule {
    std::string_view text;
    Operator op;
    int level;
  };
  constexpr Rule kRules[] = {{"+", Operator::kAdd, 0}, {"-", Operator::kSub, 0},       {"*", Operator::kMul, 2},
                             {"/", Operator::kDiv, 2}, {"//", Operator::kFloorDiv, 2}, {"%", Operator::kMod, 2},
                             {"**", Operator::kPow, 3}};
  if (level > 3) return Unary(true);
  Node* left = Arithmetic(level + 1);
  if (level == 1) {
    if (!AtOperator("~")) return left;
    Node* node = New(NodeKind::kConcat, left->line);
    node->list.push_back(left);
    while (SkipOperator("~")) node->list.push_back(Arithmetic(level + 1));
    return Done(node);
  }
  while (Current().kind == TokenKind::kOperator) {
    const Rule* rule = nullptr;
    for (const Rule& candidate : kRules) {
      if (candidate.level == level && candidate.text == Current().text) rule = &candidate;
    }
    if (rule == nullptr) break;
    Node* node = New(NodeKind::kBinary, Next().line);
    node->operators.push_back(rule->op);
    node->a = left;
    node->b = Arithmetic(level + 1);
    left = Done(node);
  }
  return left;
}

Node* Parser::Unary(bool with_filter) {
  const int line = Current().line;
  Node* node = nullptr;
  if (AtOperator("-") || AtOperator("+")) {
    const Nested nested(*this);
    node = New(AtOperator("-") ? NodeKind::kNegative : NodeKind::kPositive, line);
    Next();
    node->a = Unary(false);
    Done(node);
  } else {
    node = Primary(false);
  }
  node = Postfix(node);
  return with_filter ? FilterExpression(node) : node;
}

Node* Parser::NameOrConstant(bool with_namespace) {
  Token& token = Next();
  const std::string& name = token.text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    Node* node = New(NodeKind::kConst, token.line);
    node->value = Value::Bool(name == "true" || name == "True");
    return node;
  }
  if (name == "none" || name == "None") return New(NodeKind::kConst, token.line);
  if (with_namespace && SkipOperator(".")) {
    Node* node = New(NodeKind::kNamespaceRef, token.line);
    node->name = name;
    node->attribute = ExpectName();
    return node;
  }
  Node* node = New(NodeKind::kName, token.line);
  node->name = name;
  return node;
}

Node* Parser::Primary(bool with_namespace) {
  Token& token = tokens_[at_];
  switch (token.kind) {
    case TokenKind::kName:
      return NameOrConstant(with_namespace);
    case TokenKind::kString: {
      std::string text = std::move(Next().text);
      while (Current().kind == TokenKind::kString) text += Next().text;
      Node* node = New(NodeKind::kConst, token.line);
      node->value = Value::String(std::move(text));
      return node;
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat: {
      Node* node = New(NodeKind::kConst, token.line);
      node->value = Next().value;
      return node;
    }
    default:
      break;
  }
  if (SkipOperator("(")) {
    Node* node = ParseTuple({.parentheses = true});
    ExpectOperator(")");
    return node;
  }
  if (AtOperator("[")) return ListLiteral();
  if (AtOperator("{")) return DictLiteral();
  Error(token.line, "unexpected '", Describe(token), "'");
}

Node* Parser::ListLiteral() {
  const Nested nested(*this);
  Node* node = New(NodeKind::kList, Next().line);
  while (!AtOperator("]")) {
    if (!node->list.empty()) ExpectOperator(",");
    if (AtOperator("]")) break;
    node->list.push_back(Expression());
  }
  ExpectOperator("]");
  return Done(node);
}

Node* Parser::DictLiteral() {
  const Nested nested(*this);
  Node* node = New(NodeKind::kDict, Next().line);
  while (!AtOperator("}")) {
    if (!node->list.empty()) ExpectOperator(",");
    if (AtOperator("}")) break;
    node->list.push_back(Expression());
    ExpectOperator(":");
    node->list2.push_back(Expression());
  }
  ExpectOperator("}");
  return Done(node);
}

Node* Parser::Postfix(Node* node) {
  while (true) {
    if (AtOperator(".") || AtOperator("[")) {
      node = Subscript(node);
    } else if (AtOperator("(")) {
      node = Call(node);
    } else {
      return node;
    }
  }
}

Node* Parser::FilterExpression(Node* node) {
  while (true) {
    if (AtOperator("|")) {
      node = Filters(node, false);
    } else if (AtName("is")) {
      node = Test(node);
    } else if (AtOperator("(")) {
      node = Call(node);
    } else {
      return node;
    }
  }
}

Node* Parser::Subscript(Node* base) {
  const int line = Current().line;
  if (SkipOperator(".")) {
    Token& token = Next();
    if (token.kind == TokenKind::kName) {
      Node* node = New(NodeKind::kAttribute, line);
      node->a = base;
      node->name = token.text;
      return Done(node);
    }
    if (token.kind != TokenKind::kInteger) Error(token.line, "expected name or number");
    Node* node = New(NodeKind::kItem, line);
    node->a = base;
    node->b = New(NodeKind::kConst, line);
    node->b->value = token.value;
    return Done(node);
  }
  ExpectOperator("[");
  const Nested nested(*this);
  Node* node = New(NodeKind::kItem, line);
  node->a = base;
  std::vector<Node*> keys;
  while (!AtOperator("]")) {
    if (!keys.empty()) ExpectOperator(",");
    keys.push_back(Subscribed());
  }
  ExpectOperator("]");
  if (keys.size() == 1) {
    node->b = keys[0];
    return Done(node);
  }
  for (const Node* key : keys) {
    if (key->kind == NodeKind::kSlice) Error(line, "a slice cannot be part of a tuple");
  }
  node->b = New(NodeKind::kTuple, line);
  node->b->list = std::move(keys);
  Done(node->b);
  return Done(node);
}

Node* Parser::Subscribed() {
  const int line = Current().line;
  Node* first = nullptr;
  if (!AtOperator(":")) {
    first = Expression();
    if (!AtOperator(":")) return first;
  }
  Node* node = New(NodeKind::kSlice, line);
  node->a = first;
  Next();
  const auto at_end = [&] { return AtOperator("]") || AtOperator(","); };
  if (!AtOperator(":") && !at_end()) node->b = Expression();
  if (SkipOperator(":") && !at_end()) node->c = Expression();
  return Done(node);
}

void Parser::CallArguments(Node& node) {
  const Nested nested(*this);
  const int line = Current().line;
  const auto ensure = [&](bool fine) {
    if (!fine) Error(line, "invalid syntax for function call expression");
  };
  ExpectOperator("(");
  bool first = true;
  while (!AtOperator(")")) {
    if (!first) {
      ExpectOperator(",");
      if (AtOperator(")")) break;
    }
    first = false;
    if (AtOperator("*")) {
      ensure(node.dynamic_arguments == nullptr && node.dynamic_keywords == nullptr);
      Next();
      node.dynamic_arguments = Expression();
    } else if (AtOperator("**")) {
      ensure(node.dynamic_keywords == nullptr);
      Next();
      node.dynamic_keywords = Expression();
    } else if (Current().kind == TokenKind::kName && IsOperator(Look(), "=")) {
      ensure(node.dynamic_keywords == nullptr);
      Node* keyword = New(NodeKind::kKeyword, Current().line);
      keyword->name = Next().text;
      Next();
      for (const Node* other : node.keywords) {
        if (other->name == keyword->name) Error(line, "keyword argument repeated: ", keyword->name);
      }
      keyword->a = Expression();
      node.keywords.push_back(Done(keyword));
    } else {
      ensure(node.dynamic_arguments == nullptr && node.dynamic_keywords == nullptr && node.keywords.empty());
      node.arguments.push_back(Expression());
    }
  }
  ExpectOperator(")");
}

Node* Parser::Call(Node* callee) {
  Node* node = New(NodeKind::kCall, Current().line);
  node->a = callee;
  CallArguments(*node);
  return Done(node);
}

std::string Parser::DottedName() {
  std::string name = ExpectName();
  while (SkipOperator(".")) name += "." + ExpectName();
  return name;
}

Node* Parser::Filters(Node* value, bool inline_start) {
  while (inline_start || AtOperator("|")) {
    if (!inline_start) Next();
    inline_start = false;
    Node* node = New(NodeKind::kFilter, Current().line);
    node->a = value;
    node->name = DottedName();
    if (AtOperator("(")) CallArguments(*node);
    value = Done(node);
  }
  return value;
}

Node* Parser::Test(Node* value) {
  const int line = Next().line;
  const bool negated = SkipName("not");
  Node* node = New(NodeKind::kTest, line);
  node->a = value;
  node->name = DottedName();
  const TokenKind kind = Current().kind;
  if (AtOperator("(")) {
    CallArguments(*node);
  } else if ((kind == TokenKind::kName || kind == TokenKind::kString || kind == TokenKind::kInteger ||
              kind == TokenKind::kFloat || AtOperator("[") || AtOperator("{")) &&
             !AtName("else") && !AtName("or") && !AtName("and")) {
    if (AtName("is")) Error(line, "You cannot chain multiple tests with is");
    node->arguments.push_back(Postfix(Primary(false)));
  }
  Done(node);
  if (!negated) return node;
  Node* inverse = New(NodeKind::kNot, line);
  inverse->a = node;
  return Done(inverse);
}

}  // namespace vllm::jinja
