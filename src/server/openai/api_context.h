// What every endpoint works with.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/llm_engine.h"
#include "server/http/http_server.h"

namespace vllm {

// Settings of the API, vLLM's names.
struct ApiOptions {
  std::vector<std::string> api_keys = {};  // empty: no guard
  std::string response_role = "assistant";
  std::string chat_template_content_format = "auto";  // auto, string, openai
  std::string default_chat_template_kwargs = {};      // a JSON object, or empty
  bool trust_request_chat_template = false;
  bool enable_request_id_headers = false;
  bool enable_prompt_tokens_details = false;
  bool enable_force_include_usage = false;
  bool return_tokens_as_token_ids = false;
  bool exclude_tools_when_tool_choice_none = false;
  bool enable_log_requests = false;
  bool dev_mode = false;  // VLLM_SERVER_DEV_MODE: /reset_prefix_cache
};

// Immutable while the server runs; handlers of any thread use it.
struct ApiContext {
  LlmEngine* engine = nullptr;
  ApiOptions options = {};
  int64_t created = 0;  // Unix seconds at which the server started
  std::string system_fingerprint = {};
};

}  // namespace vllm
