// Whether a chat template takes a message's content as one text or as a list of parts, decided from its syntax tree as
// vLLM does.
#pragma once
#include "text/template/ast.h"
#include "text/template/chat_template.h"

namespace vllm::jinja {

ContentFormat DetectContentFormat(const Tree& tree);

}  // namespace vllm::jinja
