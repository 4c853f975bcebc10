// POST /v1/chat/completions on models whose greedy text is known.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/server/api_server_util.h"
#include "tests/server/script_model_util.h"

namespace vllm {
namespace {

using base::Json;
using testing::ExactConfig;
using testing::JsonAnswer;
using testing::StreamAnswer;
using testing::TempFolder;
using testing::TestServer;

constexpr const char* kPath = "/v1/chat/completions";

TestServer& Llama() {
  static const TempFolder folder;
  static TestServer server(
      ExactConfig(WriteScriptModel(folder, {"Hi ", "\xf0\x9f", "\xa6\x99", " caf", "\xc3", "\xa9", " end"})));
  return server;
}

std::string Body(const std::string& more) {
  return R"({"messages":[{"role":"user","content":"x"}],"max_tokens":20)" + more + "}";
}

TEST(ChatCompletions, LogprobsCarryHalfCharactersAsBytes) {
  const JsonAnswer answer = Llama().Post(kPath, Body(R"(,"temperature":0,"logprobs":true,"top_logprobs":2)"));
  const Json& choice = (*answer)["choices"][0];
  EXPECT_EQ(choice["message"]["content"], "Hi 🦙 café end");
  std::string bytes;
  for (const Json& token : choice["logprobs"]["content"]) {
    EXPECT_EQ(token["top_logprobs"].size(), 2u);
    for (const Json& byte : token["bytes"]) bytes += static_cast<char>(byte.get<int>());
  }
  EXPECT_TRUE(bytes.starts_with("Hi 🦙 café end"));
}

TEST(ChatCompletions, AStreamSaysWhatTheWholeAnswerSays) {
  const std::string body = Body(R"(,"temperature":0,"logprobs":true,"top_logprobs":2)");
  const StreamAnswer stream = Llama().Stream(kPath, body);
  EXPECT_EQ(stream.fault, "");
  EXPECT_EQ(stream.Text(), "Hi 🦙 café end");
  size_t tokens = 0;
  for (const Json& event : *stream.events)
    if (event["choices"][0]["logprobs"].is_object()) tokens += event["choices"][0]["logprobs"]["content"].size();
  EXPECT_EQ(tokens, (*Llama().Post(kPath, body))["choices"][0]["logprobs"]["content"].size());
}

TEST(ChatCompletions, TheRoleComesOnceAChoiceAndTheReasonLast) {
  const StreamAnswer stream = Llama().Stream(kPath, Body(R"(,"temperature":1,"top_k":1,"n":2)"));
  EXPECT_EQ(stream.fault, "");
  for (int index = 0; index < 2; ++index) {
    std::vector<Json> own;
    for (const Json& event : *stream.events)
      for (const Json& choice : event["choices"])
        if (choice["index"] == index) own.push_back(choice);
    ASSERT_GE(own.size(), 2u);  // pieces of a backed-up stream may have been merged
    EXPECT_EQ(own[0]["delta"]["role"], "assistant");
    for (size_t i = 1; i < own.size(); ++i) EXPECT_FALSE(own[i]["delta"].contains("role"));
    for (size_t i = 0; i + 1 < own.size(); ++i) EXPECT_EQ(own[i].at("finish_reason"), nullptr);
    EXPECT_EQ(own.back()["finish_reason"], "stop");
  }
}

TEST(ChatCompletions, UsageIsOneMoreChunkWithoutChoices) {
  const StreamAnswer stream =
      Llama().Stream(kPath, Body(R"(,"temperature":0,"stream_options":{"include_usage":true})"));
  EXPECT_EQ(stream.fault, "");
  const Json& last = stream.events->back();
  EXPECT_TRUE(last["choices"].empty());
  EXPECT_EQ(last["usage"]["completion_tokens"], 8);
  for (size_t i = 0; i + 1 < stream.events->size(); ++i) {
    EXPECT_FALSE((*stream.events)[i].contains("usage"));
    EXPECT_EQ((*stream.events)[i]["choices"].size(), 1u);
  }
}

TEST(ChatCompletions, ContinuousUsageCountsUp) {
  const StreamAnswer stream = Llama().Stream(
      kPath, Body(R"(,"temperature":0,"stream_options":{"include_usage":true,"continuous_usage_stats":true})"));
  int64_t before = 0;
  for (const Json& event : *stream.events) {
    ASSERT_TRUE(event["usage"].is_object());
    EXPECT_GE(event["usage"]["completion_tokens"].get<int64_t>(), before);
    before = event["usage"]["completion_tokens"];
  }
  EXPECT_EQ(before, 8);
}

TEST(ChatCompletions, WithoutALimitTheContextIsTheLimit) {
  const JsonAnswer answer =
      Llama().Post(kPath, R"({"messages":[{"role":"user","content":"x"}],"ignore_eos":true,"temperature":0})");
  EXPECT_EQ((*answer)["usage"]["total_tokens"], 512);
  EXPECT_EQ((*answer)["choices"][0]["finish_reason"], "length");
}

TEST(ChatCompletions, EitherNameOfTheLimitCounts) {
  for (const char* field : {"max_tokens", "max_completion_tokens"}) {
    const JsonAnswer answer = Llama().Post(
        kPath, std::string(R"({"messages":[{"role":"user","content":"x"}],"temperature":0,")") + field + "\":3}");
    EXPECT_EQ((*answer)["usage"]["completion_tokens"], 3) << field;
    for (const char* bad : {"0", "-1", "513", "1.5", "\"5\"", "9223372036854775808"})
      EXPECT_EQ(
          Llama()
              .Post(kPath, std::string(R"({"messages":[{"role":"user","content":"x"}],")") + field + "\":" + bad + "}")
              .status,
          400)
          << field << bad;
  }
}

TEST(ChatCompletions, BadFieldsAreA400) {
  for (const char* fields :
       {R"(,"top_logprobs":2)", R"(,"logprobs":true,"top_logprobs":-2)", R"(,"logprobs":true,"top_logprobs":1000)",
        R"(,"logprobs":5)", R"(,"n":0)", R"(,"n":1000000000)", R"(,"logprob_token_ids":[1])",
        R"(,"response_format":{"type":"json_schema"})", R"(,"stream_options":{})", R"(,"temperature":3)",
        R"(,"media_io_kwargs":{})", R"(,"add_generation_prompt":true,"continue_final_message":true)"})
    EXPECT_EQ(Llama().Post(kPath, Body(fields)).status, 400) << fields;
}

constexpr const char* kOptionalFields[] = {"model",
                                           "frequency_penalty",
                                           "logit_bias",
                                           "logprobs",
                                           "top_logprobs",
                                           "max_completion_tokens",
                                           "n",
                                           "presence_penalty",
                                           "response_format",
                                           "seed",
                                           "stop",
                                           "stream",
                                           "stream_options",
                                           "temperature",
                                           "top_p",
                                           "tools",
                                           "tool_choice",
                                           "reasoning_effort",
                                           "thinking_token_budget",
                                           "parallel_tool_calls",
                                           "user",
                                           "top_k",
                                           "min_p",
                                           "repetition_penalty",
                                           "watermarking",
                                           "stop_token_ids",
                                           "truncate_prompt_tokens",
                                           "truncation_side",
                                           "prompt_logprobs",
                                           "logprob_token_ids",
                                           "allowed_token_ids",
                                           "documents",
                                           "chat_template",
                                           "chat_template_kwargs",
                                           "media_io_kwargs",
                                           "mm_processor_kwargs",
                                           "structured_outputs",
                                           "session_id",
                                           "return_tokens_as_token_ids",
                                           "return_token_ids",
                                           "return_token_offsets",
                                           "return_prompt_text",
                                           "return_mm_kwargs",
                                           "cache_salt",
                                           "kv_transfer_params",
                                           "ec_transfer_params",
                                           "vllm_xargs",
                                           "repetition_detection",
                                           "stream_interval"};

TEST(ChatCompletions, NullCountsAsAbsentForEveryOptionalField) {
  const std::string plain = (*Llama().Post(kPath, Body(R"(,"temperature":0)")))["choices"][0].dump();
  std::string all;
  for (const std::string field : kOptionalFields) {
    if (field == "temperature") continue;
    const JsonAnswer answer = Llama().Post(kPath, Body(R"(,"temperature":0,")" + field + "\":null"));
    ASSERT_EQ(answer.status, 200) << field << answer.json->dump();
    EXPECT_EQ((*answer)["choices"][0].dump(), plain) << field;
    all += ",\"" + field + "\":null";
  }
  EXPECT_EQ((*Llama().Post(kPath, Body(R"(,"temperature":0)" + all)))["choices"][0].dump(), plain);
  EXPECT_EQ(Llama().Post(kPath, Body(R"(,"temperature":null)")).status, 200);
}

TEST(ChatCompletions, UnknownFieldsAreIgnored) {
  for (const char* fields : {R"(,"store":true)", R"(,"metadata":{"a":"b"})", R"(,"service_tier":"auto")",
                             R"(,"foo":{"bar":[1]})", R"(,"prediction":null,"verbosity":"low")"})
    EXPECT_EQ(Llama().Post(kPath, Body(fields)).status, 200) << fields;
}

TEST(ChatCompletions, ATemplatesRefusalIsA400AndTheNextRequestIsServed) {
  static const TempFolder folder;
  TestServer server(ExactConfig(WriteScriptModel(
      folder, {"ok"},
      R"({% for m in messages %}{% if (m.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("order: " ~ m.role) }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}{{ strftime_now("%Y") }})")));
  const JsonAnswer refused = server.Post(
      kPath, R"({"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}],"max_tokens":1})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE((*refused)["error"]["message"].get<std::string>().find("order: user"), std::string::npos);
  EXPECT_EQ(server.Post(kPath, Body("")).status, 200);
  const JsonAnswer tokens = server.Post("/tokenize", R"({"messages":[{"role":"user","content":"a"}]})");
  const JsonAnswer text = server.Post("/detokenize", R"({"tokens":)" + (*tokens)["tokens"].dump() + "}");
  const std::string prompt = (*text)["prompt"];
  EXPECT_TRUE(prompt.starts_with("[user]a20")) << prompt;
}

}  // namespace
}  // namespace vllm
