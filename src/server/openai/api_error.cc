// Errors as clients see them: vLLM's JSON shape and statuses.
#include "server/openai/api_error.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace vllm {

ApiError BadRequest(std::string message, std::optional<std::string> param) {
  return {.message = std::move(message), .param = std::move(param)};
}

ApiError ValidationError(const base::FieldError& error) {
  return {.type = "Bad Request", .message = error.message, .param = "body." + error.field};
}

ApiError NotFoundError(std::string message, std::optional<std::string> param) {
  return {.status = 404, .type = "NotFoundError", .message = std::move(message), .param = std::move(param)};
}

namespace {

// Validation ends its messages with "(parameter=NAME, value=VALUE)" where one field is at fault.
std::optional<std::string> ParameterOf(const std::string& message) {
  constexpr std::string_view kMark = " (parameter=";
  const size_t start = message.rfind(kMark);
  const size_t end = message.find(", value=", start == std::string::npos ? 0 : start);
  if (start == std::string::npos || end == std::string::npos || message.back() != ')') return std::nullopt;
  return message.substr(start + kMark.size(), end - start - kMark.size());
}

}  // namespace

ApiError FromEngineError(const base::Error& error) {
  switch (error.code) {
    case base::ErrorCode::kOverloaded:
      return {.status = 503, .type = "Service Unavailable", .message = error.message};
    case base::ErrorCode::kDeadlineExceeded:
      return {.status = 504, .type = "Gateway Timeout", .message = error.message};
    case base::ErrorCode::kNotFound:
      return NotFoundError(error.message);
    case base::ErrorCode::kInvalidArgument:
    case base::ErrorCode::kUnsupported:
    case base::ErrorCode::kBadFile:
      return BadRequest(error.message, ParameterOf(error.message));
    case base::ErrorCode::kOutOfMemory:
    case base::ErrorCode::kCancelled:
    case base::ErrorCode::kInternal:
      break;
  }
  return {.status = 500, .type = "InternalServerError", .message = error.message};
}

ApiError FromSubmitError(const base::Error& error, const EngineStats& stats) {
  ApiError result = FromEngineError(error);
  // The queue moves on in about the time that the last admitted request waited.
  if (result.status == 503) {
    result.retry_after_s = static_cast<int>(std::clamp<int64_t>((stats.last_queue_us + 999'999) / 1'000'000, 1, 60));
  }
  return result;
}

base::Json ErrorBody(const ApiError& error) {
  base::Json inner = base::Json::object();
  inner["message"] = error.message;
  inner["type"] = error.type;
  inner["param"] = error.param ? base::Json(*error.param) : base::Json(nullptr);
  inner["code"] = error.status;
  base::Json body = base::Json::object();
  body["error"] = std::move(inner);
  return body;
}

HttpResponse ErrorResponse(const ApiError& error) {
  HttpResponse response = {.status = error.status, .body = base::DumpJson(ErrorBody(error))};
  if (error.retry_after_s) response.headers.push_back({"Retry-After", std::to_string(*error.retry_after_s)});
  return response;
}

HttpResponse JsonResponse(const base::Json& body) { return {.body = base::DumpJson(body)}; }

}  // namespace vllm
