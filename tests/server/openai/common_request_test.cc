// Fields that both generating endpoints share: read, checked, or refused by name.
#include "server/openai/common_request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/server/fake_engine.h"

namespace vllm {
namespace {

using testing::ByteTokenizerJson;
using testing::FakeEngine;

class CommonRequestTest : public ::testing::Test {
 protected:
  CommonRequestTest() { context_.engine = &engine_; }
  ApiResult<CommonRequest> Read(const std::string& json, HttpHeaders headers = {}) {
    const base::Json body = base::Json::parse(json);
    base::JsonFields fields(body);
    return ReadCommon(context_, {.headers = std::move(headers)}, fields, "cmpl-", {});
  }
  CommonRequest Good(const std::string& json, HttpHeaders headers = {}) {
    auto read = Read(json, std::move(headers));
    const ApiError* error = std::get_if<ApiError>(&read);
    EXPECT_EQ(error, nullptr) << json << error->message;
    return error ? CommonRequest() : std::get<CommonRequest>(read);
  }
  ApiError Bad(const std::string& json) {
    auto read = Read(json);
    const ApiError* error = std::get_if<ApiError>(&read);
    EXPECT_NE(error, nullptr) << json;
    return error ? *error : ApiError{.status = 0};
  }

  FakeEngine engine_{ByteTokenizerJson()};
  ApiContext context_;
};

TEST_F(CommonRequestTest, AnEmptyRequestGetsTheDefaults) {
  const CommonRequest common = Good("{}");
  EXPECT_EQ(common.model, "m");
  EXPECT_FALSE(common.stream || common.echo || common.include_usage);
  EXPECT_TRUE(common.id.starts_with("cmpl-"));
  EXPECT_EQ(common.id.size(), 5u + 32u);
  EXPECT_EQ(common.params.temperature, 1);
}

TEST_F(CommonRequestTest, AnAliasIsReportedAsAsked) { EXPECT_EQ(Good(R"({"model":"alias"})").model, "alias"); }

TEST_F(CommonRequestTest, AnotherModelIsNotFound) { EXPECT_EQ(Bad(R"({"model":"x"})").status, 404); }

TEST_F(CommonRequestTest, EveryRefusedFieldIsNamedUnlessItHoldsItsDefault) {
  for (const char* field :
       {"watermarking", "truncate_prompt_tokens", "structured_outputs", "kv_transfer_params", "vllm_xargs",
        "repetition_detection", "session_id", "ec_transfer_params", "prompt_logprob_token_ids", "truncation_side"}) {
    const std::string name = std::string("{\"") + field + "\":";
    EXPECT_EQ(Bad(name + "{\"a\":1}}").param, field);
    Good(name + "null}");
  }
  for (const char* defaults : {R"({"use_beam_search":false})", R"({"length_penalty":1.0})", R"({"length_penalty":1})",
                               R"({"response_format":{"type":"text"}})", R"({"thinking_token_budget":-1})",
                               R"({"stream_interval":1})", R"({"routed_experts_prompt_start":0})"})
    Good(defaults);
  for (const char* other : {R"({"use_beam_search":true})", R"({"length_penalty":2})", R"({"stream_interval":2})",
                            R"({"response_format":{"type":"json_object"}})", R"({"thinking_token_budget":5})"})
    EXPECT_EQ(Bad(other).status, 400);
}

TEST_F(CommonRequestTest, StreamOptionsNeedAStreamAndAnObject) {
  EXPECT_EQ(Bad(R"({"stream_options":{"include_usage":true}})").param, "stream_options");
  EXPECT_EQ(Bad(R"({"stream":true,"stream_options":[]})").status, 400);
  EXPECT_EQ(Bad(R"({"stream":true,"stream_options":{"include_usage":5}})").status, 400);
  EXPECT_TRUE(Good(R"({"stream":true,"stream_options":{}})").include_usage);
  EXPECT_FALSE(Good(R"({"stream":true,"stream_options":{"include_usage":false,"continuous_usage_stats":true}})")
                   .continuous_usage);
}

TEST_F(CommonRequestTest, TheOperatorCanForceUsage) {
  context_.options.enable_force_include_usage = true;
  EXPECT_TRUE(Good(R"({"stream":true})").include_usage);
}

TEST_F(CommonRequestTest, TheHeadersIdComesBeforeTheBodys) {
  EXPECT_EQ(Good(R"({"request_id":"b"})").id, "cmpl-b");
  EXPECT_EQ(Good(R"({"request_id":"b"})", {{"x-request-id", "h"}}).id, "cmpl-h");
  EXPECT_EQ(Good("{}", {{"x-request-id", "a\xff"}}).id, "cmpl-a\uFFFD");
  EXPECT_EQ(Bad(R"({"request_id":")" + std::string(300, 'r') + "\"}").param, "request_id");
}

TEST_F(CommonRequestTest, SaltsAreShortAndWithoutSeparators) {
  EXPECT_EQ(Good(R"({"cache_salt":"s"})").cache_salt, "s");
  for (const char* salt : {"", "a@b", "a/b", "a\\\\b", "a\\u0000b"})
    EXPECT_EQ(Bad(std::string(R"({"cache_salt":")") + salt + "\"}").param, "cache_salt") << salt;
  EXPECT_EQ(Bad(R"({"cache_salt":")" + std::string(129, 's') + "\"}").param, "cache_salt");
}

TEST_F(CommonRequestTest, PromptLogprobsDoNotStream) {
  EXPECT_EQ(Good(R"({"prompt_logprobs":2})").params.prompt_logprobs, 2);
  EXPECT_EQ(Good(R"({"prompt_logprobs":-1})").params.prompt_logprobs, -1);
  EXPECT_EQ(Bad(R"({"prompt_logprobs":2,"stream":true})").param, "prompt_logprobs");
  EXPECT_EQ(Bad(R"({"prompt_logprobs":-2})").param, "prompt_logprobs");
}

TEST_F(CommonRequestTest, AMistypedFieldIsNamedWithItsPlace) {
  const ApiError error = Bad(R"({"temperature":"hot"})");
  EXPECT_EQ(error.param, "body.temperature");
  EXPECT_NE(error.message.find("'temperature'"), std::string::npos);
}

TEST_F(CommonRequestTest, BodiesMustBeJsonObjectsAndSaySo) {
  const auto parse = [](const std::string& type, const std::string& body) {
    HttpRequest request{.headers = {{"content-type", type}}, .body = body};
    auto parsed = ParseBody(request);
    const ApiError* error = std::get_if<ApiError>(&parsed);
    return error ? error->status : 200;
  };
  EXPECT_EQ(parse("application/json", "{}"), 200);
  EXPECT_EQ(parse("Application/JSON; charset=utf-8", "{}"), 200);
  EXPECT_EQ(parse("text/plain", "{}"), 400);
  EXPECT_EQ(parse("", "{}"), 400);
  for (const char* body : {"", "[]", "5", "{", "null", "{\"a\":\"\xff\"}", "{}x"})
    EXPECT_EQ(parse("application/json", body), 400) << body;
}

TEST_F(CommonRequestTest, LimitsAreResolvedAgainstTheContext) {
  SamplingParams params;
  EXPECT_FALSE(ResolveMaxTokens(context_, "max_tokens", 60, 8, params));
  EXPECT_EQ(params.max_tokens, 56);
  EXPECT_FALSE(ResolveMaxTokens(context_, "max_tokens", std::nullopt, 8, params));
  EXPECT_EQ(params.max_tokens, 56);
  EXPECT_FALSE(ResolveMaxTokens(context_, "max_tokens", 5, 8, params));
  EXPECT_EQ(params.max_tokens, 5);
  EXPECT_EQ(ResolveMaxTokens(context_, "max_tokens", 65, 8, params)->param, "max_tokens");
  EXPECT_EQ(ResolveMaxTokens(context_, "max_tokens", -1, 8, params)->param, "max_tokens");
  engine_.defaults_.max_new_tokens = 3;
  EXPECT_FALSE(ResolveMaxTokens(context_, "max_tokens", std::nullopt, 8, params));
  EXPECT_EQ(params.max_tokens, 3);
}

TEST_F(CommonRequestTest, ATextThatNoContextOfLongestTokensHoldsIsRefusedUntokenized) {
  std::string text;  // the longest token is "<|end|>": 64 × 7 characters, of two bytes each here
  for (int i = 0; i < 448; ++i) text += "é";
  EXPECT_FALSE(CheckTextLength(context_, text));
  const auto error = CheckTextLength(context_, text + "x");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->param, "input_text");
  EXPECT_EQ(error->message,
            "This model's maximum context length is 64 tokens. However, your prompt contains 449 characters (more than "
            "448 characters, which is the upper bound for 64 input tokens). Please reduce the length of the input "
            "prompt. (parameter=input_text, value=449)");
}

TEST_F(CommonRequestTest, APromptBeyondTheContextIsToldWithBothNumbers) {
  EXPECT_FALSE(CheckPromptLength(context_, 64));
  const auto error = CheckPromptLength(context_, 65);
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("maximum context length is 64 tokens"), std::string::npos);
  EXPECT_NE(error->message.find("65 input tokens"), std::string::npos);
}

TEST_F(CommonRequestTest, RandomIdsDiffer) { EXPECT_NE(RandomId(), RandomId()); }

}  // namespace
}  // namespace vllm
