// The grammar of jinja2 with the loop-control and generation tags, by recursive descent with bounded depth.
#include "text/template/parser.h"

#include <algorithm>
#include <initializer_list>

#include "base/limits.h"
#include "text/template/lexer.h"
#include "text/template/parser_impl.h"

namespace vllm::jinja {

const Token& Parser::Look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }

Token& Parser::Next() {
  Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::IsName(const Token& token, std::string_view name) {
  return token.kind == TokenKind::kName && token.text == name;
}
bool Parser::IsOperator(const Token& token, std::string_view op) {
  return token.kind == TokenKind::kOperator && token.text == op;
}

std::string Parser::Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "template data / text";
    case TokenKind::kVariableBegin:
      return "begin of print statement";
    case TokenKind::kVariableEnd:
      return "end of print statement";
    case TokenKind::kBlockBegin:
      return "begin of statement block";
    case TokenKind::kBlockEnd:
      return "end of statement block";
    case TokenKind::kString:
      return "string";
    case TokenKind::kInteger:
      return "integer";
    case TokenKind::kFloat:
      return "float";
    case TokenKind::kEnd:
      return "end of template";
    case TokenKind::kName:
    case TokenKind::kOperator:
      break;
  }
  return token.text;
}

bool Parser::SkipName(std::string_view name) {
  if (!AtName(name)) return false;
  Next();
  return true;
}
bool Parser::SkipOperator(std::string_view op) {
  if (!AtOperator(op)) return false;
  Next();
  return true;
}

void Parser::ExpectedError(std::string_view what) {
  if (Current().kind == TokenKind::kEnd) Error(Current().line, "unexpected end of template, expected '", what, "'");
  Error(Current().line, "expected token '", what, "', got '", Describe(Current()), "'");
}
void Parser::ExpectOperator(std::string_view op) {
  if (!SkipOperator(op)) ExpectedError(op);
}
std::string Parser::ExpectName() {
  if (Current().kind != TokenKind::kName) ExpectedError("name");
  return Next().text;
}
void Parser::Expect(TokenKind kind, std::string_view what) {
  if (Current().kind != kind) ExpectedError(what);
  Next();
}

Node* Parser::New(NodeKind kind, int line) {
  tree_.nodes.push_back({});
  Node& node = tree_.nodes.back();
  node.kind = kind;
  node.line = line;
  return &node;
}

// Sets the depth of a finished node; trees deeper than the limit are refused, however they were spelled.
Node* Parser::Done(Node* node) {
  int deepest = 0;
  ForEachChild(*node, [&](const Node& child) { deepest = std::max(deepest, child.depth); });
  node->depth = deepest + 1;
  if (node->depth > base::kMaxTemplateNesting) {
    Error(node->line, "the template is nested more than ", base::kMaxTemplateNesting, " deep");
  }
  return node;
}

Parser::Nested::Nested(Parser& parser) : parser_(parser) {
  if (++parser_.nesting_ > base::kMaxTemplateNesting) {
    parser_.Error(parser_.Current().line, "the template is nested more than ", base::kMaxTemplateNesting, " deep");
  }
}

// ---- statements ----

std::vector<Node*> Parser::Body(std::initializer_list<std::string_view> ends) {
  const Nested nested(*this);
  std::vector<Node*> body;
  Node* output = nullptr;
  const auto add = [&](Node* node) {
    if (output == nullptr) {
      output = New(NodeKind::kOutput, node->line);
      body.push_back(output);
    }
    output->list.push_back(node);
  };
  const auto finish = [&] {
    if (output != nullptr) Done(output);
    output = nullptr;
  };
  while (Current().kind != TokenKind::kEnd) {
    Token& token = Next();
    if (token.kind == TokenKind::kData) {
      Node* data = New(NodeKind::kData, token.line);
      data->value = Value::String(std::move(token.text));
      add(data);
    } else if (token.kind == TokenKind::kVariableBegin) {
      add(ParseTuple({}));
      Expect(TokenKind::kVariableEnd, "end of print statement");
    } else {  // the lexer gives nothing but block begins here
      finish();
      if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return AtName(end); })) return body;
      body.push_back(Statement());
      Expect(TokenKind::kBlockEnd, "end of statement block");
    }
  }
  finish();
  if (ends.size() > 0) {
    Error(Current().line, "Unexpected end of template. Jinja was looking for the following tags: '", JoinTags(ends),
          "'");
  }
  return body;
}

std::string Parser::JoinTags(std::initializer_list<std::string_view> tags) {
  std::string out;
  for (const std::string_view tag : tags) {
    if (!out.empty()) out += "' or '";
    out += tag;
  }
  return out;
}

std::vector<Node*> Parser::Block(std::initializer_list<std::string_view> ends) {
  SkipOperator(":");
  Expect(TokenKind::kBlockEnd, "end of statement block");
  return Body(ends);
}

std::vector<Node*> Parser::BlockToEnd(std::string_view end) {
  auto body = Block({end});
  Next();
  return body;
}

Node* Parser::Statement() {
  const Token token = Current();
  if (token.kind != TokenKind::kName) Error(token.line, "tag name expected");
  const std::string& tag = token.text;
  for (const std::string_view refused : {"include", "import", "from", "extends", "block"}) {
    if (tag == refused) Refuse("line ", token.line, ": {% ", tag, " %} is not supported: a chat template is one text");
  }
  if (tag == "autoescape") Refuse("line ", token.line, ": {% autoescape %} is not supported");
  Next();
  if (tag == "for") return For(token.line);
  if (tag == "if") return If(token.line);
  if (tag == "set") return Set(token.line);
  if (tag == "macro") return Macro(token.line);
  if (tag == "call") return CallBlock(token.line);
  if (tag == "filter") return FilterBlock(token.line);
  if (tag == "with") return With(token.line);
  if (tag == "print") return Print(token.line);
  if (tag == "break" || tag == "continue") {
    if (loops_ == 0) Error(token.line, "'", tag, "' outside loop");
    return Done(New(tag == "break" ? NodeKind::kBreak : NodeKind::kContinue, token.line));
  }
  if (tag == "generation") {
    Node* node = New(NodeKind::kGeneration, token.line);
    const int loops = std::exchange(loops_, 0);
    node->list3 = BlockToEnd("endgeneration");
    loops_ = loops;
    return Done(node);
  }
  Error(token.line, "Encountered unknown tag '", tag, "'");
}

Node* Parser::For(int line) {
  Node* node = New(NodeKind::kFor, line);
  node->a = Target({.end_name = "in"});
  if (!SkipName("in")) ExpectedError("in");
  node->b = ParseTuple({.conditional = false, .end_name = "recursive"});
  if (SkipName("if")) node->c = Expression();
  node->flag = SkipName("recursive");
  // A recursive loop is a function of its own: its else block is in no loop.
  const int loops = std::exchange(loops_, node->flag ? 1 : loops_ + 1);
  node->list = Block({"endfor", "else"});
  loops_ = node->flag ? 0 : loops;
  if (Next().text == "else") node->list2 = BlockToEnd("endfor");
  loops_ = loops;
  return Done(node);
}

Node* Parser::If(int line) {
  Node* result = New(NodeKind::kIf, line);
  Node* node = result;
  while (true) {
    node->a = ParseTuple({.conditional = false});
    node->list = Block({"elif", "else", "endif"});
    const Token& token = Next();
    if (node != result) Done(node);
    if (token.text == "elif") {
      node = New(NodeKind::kIf, Current().line);
      result->list2.push_back(node);
      continue;
    }
    if (token.text == "else") result->list3 = BlockToEnd("endif");
    return Done(result);
  }
}

Node* Parser::Set(int line) {
  Node* target = Target({.with_namespace = true});
  if (SkipOperator("=")) {
    Node* node = New(NodeKind::kAssign, line);
    node->a = target;
    node->b = ParseTuple({});
    return Done(node);
  }
  Node* node = New(NodeKind::kAssignBlock, line);
  node->a = target;
  node->b = Filters(nullptr, false);
  node->list = BlockToEnd("endset");
  return Done(node);
}

void Parser::Signature(Node& node) {
  ExpectOperator("(");
  while (!AtOperator(")")) {
    if (!node.list.empty()) ExpectOperator(",");
    const int line = Current().line;
    Node* parameter = New(NodeKind::kName, line);
    parameter->name = ExpectName();
    CheckAssignable(*parameter);
    parameter->access = Access::kParameter;
    if (SkipOperator("=")) {
      node.list2.push_back(Expression());
    } else if (!node.list2.empty()) {
      Error(line, "non-default argument follows default argument");
    }
    node.list.push_back(parameter);
  }
  ExpectOperator(")");
}

Node* Parser::Macro(int line) {
  Node* node = New(NodeKind::kMacro, line);
  node->name = ExpectName();
  Signature(*node);
  const int loops = std::exchange(loops_, 0);
  node->list3 = BlockToEnd("endmacro");
  loops_ = loops;
  return Done(node);
}

Node* Parser::CallBlock(int line) {
  Node* node = New(NodeKind::kCallBlock, line);
  if (AtOperator("(")) Signature(*node);
  node->a = Expression();
  if (node->a->kind != NodeKind::kCall) Error(line, "expected call");
  const int loops = std::exchange(loops_, 0);
  node->list3 = BlockToEnd("endcall");
  loops_ = loops;
  return Done(node);
}

Node* Parser::FilterBlock(int line) {
  Node* node = New(NodeKind::kFilterBlock, line);
  node->a = Filters(nullptr, true);
  node->list = BlockToEnd("endfilter");
  return Done(node);
}

Node* Parser::With(int line) {
  Node* node = New(NodeKind::kWith, line);
  while (Current().kind != TokenKind::kBlockEnd) {
    if (!node->list.empty()) ExpectOperator(",");
    Node* target = Target({});
    SetAccess(*target, Access::kParameter);
    node->list.push_back(target);
    ExpectOperator("=");
    node->list2.push_back(Expression());
  }
  node->list3 = BlockToEnd("endwith");
  return Done(node);
}

Node* Parser::Print(int line) {
  Node* node = New(NodeKind::kOutput, line);
  while (Current().kind != TokenKind::kBlockEnd) {
    if (!node->list.empty()) ExpectOperator(",");
    node->list.push_back(Expression());
  }
  return Done(node);
}

void Parser::SetAccess(Node& target, Access access) {
  target.access = access;
  for (Node* item : target.list) SetAccess(*item, access);
}

void Parser::CheckAssignable(const Node& node) {
  if (node.kind == NodeKind::kName) {
    for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
      if (node.name == constant) Error(node.line, "can't assign to '", constant, "'");
    }
    return;
  }
  if (node.kind == NodeKind::kNamespaceRef) return;
  if (node.kind != NodeKind::kTuple) Error(node.line, "can't assign to this expression");
  for (const Node* item : node.list) CheckAssignable(*item);
}

Node* Parser::Target(const TupleOptions& options) {
  TupleOptions simple = options;
  simple.simplified = true;
  Node* target = ParseTuple(simple);
  CheckAssignable(*target);
  SetAccess(*target, Access::kStore);
  return target;
}

std::unique_ptr<Tree> ParseTemplate(std::string_view source) {
  if (source.size() > base::kMaxTemplateBytes) {
    Fail("the template has ", source.size(), " bytes; the limit is ", base::kMaxTemplateBytes);
  }
  if (!base::IsValidUtf8(source)) Fail("the template is not valid UTF-8");
  auto tree = std::make_unique<Tree>();
  Parser parser(*tree, Tokenize(source));
  tree->body = parser.Body({});
  ResolveNames(*tree);
  return tree;
}

}  // namespace vllm::jinja
