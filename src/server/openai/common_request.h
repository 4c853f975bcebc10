// What /v1/completions and /v1/chat/completions have in common: fields read, checked, or refused by name.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/openai/api_context.h"
#include "server/openai/api_error.h"

namespace vllm {

struct CommonRequest {
  std::string id = {};     // "cmpl-…", "chatcmpl-…"
  std::string model = {};  // as it is to be reported
  int64_t created = 0;     // Unix seconds
  bool stream = false, include_usage = false, continuous_usage = false;
  bool echo = false, return_token_ids = false, return_tokens_as_token_ids = false;
  SamplingParams params = {};
  std::string cache_salt = {};
  int priority = 0;
  std::optional<double> timeout_s = {};  // absent: the server's
};

// A field of vLLM's request model that is not served: refused unless it holds this JSON value (or null).
struct RefusedField {
  std::string_view name, default_json;
};

// Parses a JSON body (an object of bounded depth). `response` is set on failure.
ApiResult<base::Json> ParseBody(const HttpRequest& request);
// Reads the shared fields; `id_prefix` is "cmpl-" or "chatcmpl-". Mistakes are noted in `fields` or returned.
ApiResult<CommonRequest> ReadCommon(const ApiContext& context, const HttpRequest& http, base::JsonFields& fields,
                                    std::string_view id_prefix, std::span<const RefusedField> refused);
// The served model's name for a request's `model`, or the 404.
ApiResult<std::string> CheckModel(const ApiContext& context, base::JsonFields& fields);
// vLLM's resolution of a request's limit against the context and the generation defaults. `field` names it in errors.
std::optional<ApiError> ResolveMaxTokens(const ApiContext& context, std::string_view field,
                                         std::optional<int64_t> requested, int64_t prompt_tokens,
                                         SamplingParams& params);
// Refuses a text with more characters than a context of the longest tokens has, before it is tokenized; in vLLM's
// words.
std::optional<ApiError> CheckTextLength(const ApiContext& context, std::string_view text);
// Refuses a prompt beyond the context, in vLLM's words.
std::optional<ApiError> CheckPromptLength(const ApiContext& context, int64_t prompt_tokens);
// 32 hex digits.
std::string RandomId();

}  // namespace vllm
