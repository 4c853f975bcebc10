// A chat request's messages as a template may see them, and the prompt that comes of them.
#pragma once
#include <string>

#include "base/json_fields.h"
#include "server/openai/api_context.h"
#include "server/openai/api_error.h"

namespace vllm {

struct RenderedChat {
  std::string text = {};
  std::vector<int32_t> ids = {};
  // Content of the last message if it is the assistant's, for `echo`.
  std::string last_assistant_text = {};
};

// Checks `messages`, `tools`, `tool_choice` and the template's fields, and renders them. Used by chat and by /tokenize,
// which takes prompts beyond the context too (`must_fit` false).
ApiResult<RenderedChat> RenderChat(const ApiContext& context, base::JsonFields& fields, bool must_fit = true);

}  // namespace vllm
