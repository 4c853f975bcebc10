// Splits a template into tokens as jinja2's lexer does with trim_blocks and lstrip_blocks on.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/template/value.h"

namespace vllm::jinja {

enum class TokenKind {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text = {};  // data, name, operator, or the decoded string
  Value value = {};       // of integers and floats
};

// Thrown as Failure with "line N: ...". The last token is kEnd.
std::vector<Token> Tokenize(std::string_view source);

}  // namespace vllm::jinja
