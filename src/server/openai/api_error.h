// Errors as clients see them: vLLM's JSON shape and statuses.
#pragma once
#include <optional>
#include <string>
#include <variant>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/result.h"
#include "engine/llm_engine.h"
#include "server/http/http_server.h"

namespace vllm {

struct ApiError {
  int status = 400;
  std::string type = "BadRequestError";
  std::string message = {};
  std::optional<std::string> param = {};
  std::optional<int> retry_after_s = {};  // the header Retry-After
};

// A value or what to tell the client.
template <class T>
using ApiResult = std::variant<T, ApiError>;

ApiError BadRequest(std::string message, std::optional<std::string> param = std::nullopt);
// A mistake in a field's type or range, as request validation reports it.
ApiError ValidationError(const base::FieldError& error);
ApiError NotFoundError(std::string message, std::optional<std::string> param = std::nullopt);
// An error of the engine: its code becomes the status.
ApiError FromEngineError(const base::Error& error);
// The same of a request that was not accepted: where the engine is overloaded, with the time after which to try again.
ApiError FromSubmitError(const base::Error& error, const EngineStats& stats);

// {"error": {"message", "type", "param", "code"}}
base::Json ErrorBody(const ApiError& error);
HttpResponse ErrorResponse(const ApiError& error);
HttpResponse JsonResponse(const base::Json& body);

}  // namespace vllm
