// Errors as clients see them.
#include "server/openai/api_error.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace vllm {
namespace {

TEST(ApiError, HasVllmsShape) {
  EXPECT_EQ(ErrorResponse(BadRequest("a \"b\"", "p")).body,
            R"({"error":{"message":"a \"b\"","type":"BadRequestError","param":"p","code":400}})");
  EXPECT_EQ(ErrorResponse(NotFoundError("m")).body,
            R"({"error":{"message":"m","type":"NotFoundError","param":null,"code":404}})");
}

TEST(ApiError, InvalidUtf8InAMessageBecomesAMark) {
  EXPECT_NE(ErrorResponse(BadRequest("a\xff")).body.find("a\uFFFD"), std::string::npos);
}

TEST(ApiError, AFieldsMistakeNamesItsPlaceInTheBody) {
  const ApiError error = ValidationError({.field = "n", .message = "bad"});
  EXPECT_EQ(error.param, "body.n");
  EXPECT_EQ(error.status, 400);
}

TEST(ApiError, TheEnginesCodesBecomeStatuses) {
  const auto status = [](base::ErrorCode code) { return FromEngineError(base::MakeError(code, "x")).status; };
  EXPECT_EQ(status(base::ErrorCode::kInvalidArgument), 400);
  EXPECT_EQ(status(base::ErrorCode::kUnsupported), 400);
  EXPECT_EQ(status(base::ErrorCode::kNotFound), 404);
  EXPECT_EQ(status(base::ErrorCode::kOverloaded), 503);
  EXPECT_EQ(status(base::ErrorCode::kDeadlineExceeded), 504);
  EXPECT_EQ(status(base::ErrorCode::kOutOfMemory), 500);
  EXPECT_EQ(status(base::ErrorCode::kInternal), 500);
}

TEST(ApiError, ARefusedRequestHearsWhenToTryAgain) {
  const auto header = [](base::ErrorCode code, int64_t queue_us) {
    const HttpResponse response =
        ErrorResponse(FromSubmitError(base::MakeError(code, "x"), EngineStats{.last_queue_us = queue_us}));
    return response.headers.empty() ? std::string() : response.headers[0].first + ": " + response.headers[0].second;
  };
  EXPECT_EQ(header(base::ErrorCode::kOverloaded, 0), "Retry-After: 1");
  EXPECT_EQ(header(base::ErrorCode::kOverloaded, 2'000'001), "Retry-After: 3");
  EXPECT_EQ(header(base::ErrorCode::kOverloaded, int64_t{1} << 60), "Retry-After: 60");
  EXPECT_EQ(header(base::ErrorCode::kInvalidArgument, 5), "");
}

TEST(ApiError, TheParameterIsReadFromAValidationMessage) {
  const auto param = [](const char* message) {
    return FromEngineError(base::MakeError(base::ErrorCode::kInvalidArgument, message)).param;
  };
  EXPECT_EQ(param("top_p must be … (parameter=top_p, value=2.0)"), "top_p");
  EXPECT_EQ(param("n must be at least 1, got 0."), std::nullopt);
  EXPECT_EQ(param("(parameter=x"), std::nullopt);
  EXPECT_EQ(param(""), std::nullopt);
}

}  // namespace
}  // namespace vllm
