// The parser's class, shared by its two halves: statements (parser.cc) and expressions (expression_parser.cc).
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/ast.h"
#include "text/template/lexer.h"

namespace vllm::jinja {

class Parser {
 public:
  Parser(Tree& tree, std::vector<Token> tokens) : tree_(tree), tokens_(std::move(tokens)) {}
  // Statements up to one of the tags, which is left as the current token; up to the end of the template for none.
  std::vector<Node*> Body(std::initializer_list<std::string_view> ends);

 private:
  struct TupleOptions {
    bool simplified = false;         // names and literals only
    bool conditional = true;         // `a if b else c` allowed
    bool parentheses = false;        // an empty tuple is one
    bool with_namespace = false;     // name.attribute allowed
    std::string_view end_name = {};  // a name that ends it
  };
  // Counts how deep the parser is inside itself.
  class Nested {
   public:
    explicit Nested(Parser& parser);
    ~Nested() { --parser_.nesting_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Parser& parser_;
  };

  template <class... Parts>
  [[noreturn]] void Error(int line, const Parts&... parts) const {
    Fail("line ", line, ": ", parts...);
  }
  [[noreturn]] void ExpectedError(std::string_view what);
  const Token& Current() const { return tokens_[at_]; }
  const Token& Look() const;
  Token& Next();
  static bool IsName(const Token& token, std::string_view name);
  static bool IsOperator(const Token& token, std::string_view op);
  static std::string Describe(const Token& token);
  static std::string JoinTags(std::initializer_list<std::string_view> tags);
  bool AtName(std::string_view name) const { return IsName(Current(), name); }
  bool AtOperator(std::string_view op) const { return IsOperator(Current(), op); }
  bool SkipName(std::string_view name);
  bool SkipOperator(std::string_view op);
  void ExpectOperator(std::string_view op);
  std::string ExpectName();
  void Expect(TokenKind kind, std::string_view what);
  Node* New(NodeKind kind, int line);
  Node* Done(Node* node);

  std::vector<Node*> Block(std::initializer_list<std::string_view> ends);
  std::vector<Node*> BlockToEnd(std::string_view end);
  Node* Statement();
  Node* For(int line);
  Node* If(int line);
  Node* Set(int line);
  Node* Macro(int line);
  Node* CallBlock(int line);
  Node* FilterBlock(int line);
  Node* With(int line);
  Node* Print(int line);
  void Signature(Node& node);
  Node* Target(const TupleOptions& options);
  void CheckAssignable(const Node& node);
  static void SetAccess(Node& target, Access access);

  Node* ParseTuple(const TupleOptions& options);
  Node* Expression(bool conditional = true);
  Node* Conditional();
  Node* OrExpression();
  Node* AndExpression();
  Node* NotExpression();
  Node* Comparison();
  bool ComparisonOperator(Operator& op);
  Node* Arithmetic(int level);
  Node* Unary(bool with_filter);
  Node* Primary(bool with_namespace);
  Node* NameOrConstant(bool with_namespace);
  Node* ListLiteral();
  Node* DictLiteral();
  Node* Postfix(Node* node);
  Node* FilterExpression(Node* node);
  Node* Subscript(Node* node);
  Node* Subscribed();
  Node* Call(Node* node);
  void CallArguments(Node& node);
  Node* Filters(Node* node, bool inline_start);
  Node* Test(Node* node);
  std::string DottedName();

  Tree& tree_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;  // loops around this place, inside the innermost function
};

}  // namespace vllm::jinja
