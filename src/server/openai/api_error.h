// Errors as clients see them: vLLM's JSON shape and statuses.
#pragma once
#include <optional>
#include <string>
#include <variant>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/result.h"
#include "server/http/http_server.h"

namespace vllm {

struct ApiError {
  int status = 400;
  std::string type = "BadRequestError";
  std::string message = {};
  std::optional<std::string> param = {};
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

// {"error": {"message", "type", "param", "code"}}
base::Json ErrorBody(const ApiError& error);
HttpResponse ErrorResponse(const ApiError& error);
HttpResponse JsonResponse(const base::Json& body);

}  // namespace vllm
