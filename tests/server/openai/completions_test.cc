// POST /v1/completions on models whose greedy text is known.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

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

// Loaded once for all tests of this file.
template <int kWhich>
TestServer& Scripted(const std::vector<std::string>& pieces, int64_t max_model_len = 512) {
  static const TempFolder folder;
  static TestServer server([&] {
    EngineConfig config = ExactConfig(WriteScriptModel(folder, pieces));
    config.max_model_len = max_model_len;
    return config;
  }());
  return server;
}
TestServer& Llama() { return Scripted<0>({"Hi ", "\xf0\x9f", "\xa6\x99", " caf", "\xc3", "\xa9", " end"}); }
TestServer& Stops() { return Scripted<1>({"alpha ", "be", "ta ST", "OPP", " tail", "ED ", "STO", "P!x", "after"}); }
TestServer& Short() { return Scripted<2>({"one ", "two ", "three"}, 64); }

constexpr const char* kLlamaText = "Hi 🦙 café end";

TEST(Completions, CharactersCutOverTokensArriveWholeInAStream) {
  const StreamAnswer stream =
      Llama().Stream("/v1/completions", R"({"prompt":"x","max_tokens":20,"temperature":0,"logprobs":1})");
  EXPECT_EQ(stream.fault, "");
  EXPECT_EQ(stream.Text(), kLlamaText);
  for (const Json& event : *stream.events)
    EXPECT_EQ(event["choices"][0]["text"].get<std::string>().find("\uFFFD"), std::string::npos);
}

TEST(Completions, CharactersCutOverTokensArriveWholeInOneAnswer) {
  const JsonAnswer answer =
      Llama().Post("/v1/completions", R"({"prompt":"x","max_tokens":20,"temperature":0,"logprobs":1})");
  const Json& choice = (*answer)["choices"][0];
  EXPECT_EQ(choice["text"], kLlamaText);
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["stop_reason"], nullptr);
  EXPECT_EQ((*answer)["usage"]["completion_tokens"], 8);
}

TEST(Completions, AStreamOfCutCharactersHasTheUsageOfTheWholeAnswer) {
  const std::string body = R"({"prompt":"x","max_tokens":20,"temperature":0,"logprobs":1)";
  const JsonAnswer whole = Llama().Post("/v1/completions", body + "}");
  const StreamAnswer stream = Llama().Stream("/v1/completions", body + R"(,"stream_options":{"include_usage":true}})");
  for (const char* count : {"prompt_tokens", "completion_tokens", "total_tokens"})
    EXPECT_EQ(stream.events->back()["usage"][count], (*whole)["usage"][count]) << count;
}

TEST(Completions, ACutCharacterAtTheLimitIsMarkedTheSameInBothModes) {
  const char* body = R"({"prompt":"x","max_tokens":2,"temperature":0})";
  const StreamAnswer stream = Llama().Stream("/v1/completions", body);
  EXPECT_EQ(stream.Text(), (*Llama().Post("/v1/completions", body))["choices"][0]["text"].get<std::string>());
}

struct StopCase {
  const char* fields;
  const char* text;
};
class StopStrings : public ::testing::TestWithParam<StopCase> {};

TEST_P(StopStrings, EndTheTextInBothModesAndNeverLeak) {
  const std::string body = std::string(R"({"prompt":"x","max_tokens":20,"temperature":0,)") + GetParam().fields + "}";
  const StreamAnswer stream = Stops().Stream("/v1/completions", body);
  const JsonAnswer whole = Stops().Post("/v1/completions", body);
  EXPECT_EQ(stream.fault, "");
  EXPECT_EQ(stream.Text(), GetParam().text);
  EXPECT_EQ((*whole)["choices"][0]["text"], GetParam().text);
  for (const Json& last : {stream.events->back()["choices"][0], (*whole)["choices"][0]}) {
    EXPECT_EQ(last["finish_reason"], "stop");
    EXPECT_EQ(last["stop_reason"], "STOP!");
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, StopStrings,
                         ::testing::Values(StopCase{R"("stop":["STOP!"])", "alpha beta STOPP tailED "},
                                           StopCase{R"("stop":"STOP!")", "alpha beta STOPP tailED "},
                                           StopCase{R"("stop":["none","STOP!"])", "alpha beta STOPP tailED "},
                                           StopCase{R"("stop":["STOP!"],"include_stop_str_in_output":true)",
                                                    "alpha beta STOPP tailED STOP!"}));

TEST(Completions, AStopTokenIsNamedByItsId) {
  const JsonAnswer answer =
      Stops().Post("/v1/completions", R"({"prompt":"x","max_tokens":20,"temperature":0,"stop_token_ids":[258]})");
  EXPECT_EQ((*answer)["choices"][0]["stop_reason"], 258);
  EXPECT_EQ((*answer)["choices"][0]["finish_reason"], "stop");
}

TEST(Completions, UsageChunksFollowTheStreamOptions) {
  const std::string body = R"({"prompt":"xyz","max_tokens":4,"temperature":0)";
  const StreamAnswer plain = Stops().Stream("/v1/completions", body + "}");
  for (const Json& event : *plain.events) EXPECT_TRUE(!event.contains("usage") || event["usage"].is_null());

  const StreamAnswer once = Stops().Stream("/v1/completions", body + R"(,"stream_options":{"include_usage":true}})");
  EXPECT_TRUE(once.events->back()["choices"].empty());
  EXPECT_EQ(once.events->back()["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(once.events->back()["usage"]["completion_tokens"], 4);
  EXPECT_EQ(once.events->back()["usage"]["total_tokens"], 7);
  for (size_t i = 0; i + 1 < once.events->size(); ++i) EXPECT_FALSE((*once.events)[i].contains("usage"));

  const StreamAnswer always = Stops().Stream(
      "/v1/completions", body + R"(,"stream_options":{"include_usage":true,"continuous_usage_stats":true}})");
  int64_t before = 0;
  for (const Json& event : *always.events) {
    ASSERT_TRUE(event["usage"].is_object());
    EXPECT_GE(event["usage"]["completion_tokens"].get<int64_t>(), before);
    before = event["usage"]["completion_tokens"];
  }
  EXPECT_EQ(before, 4);
}

TEST(Completions, EveryChoiceOfAStreamEndsWithItsReason) {
  const StreamAnswer stream =
      Stops().Stream("/v1/completions", R"({"prompt":["x","y"],"max_tokens":20,"top_k":1,"n":2})");
  EXPECT_EQ(stream.fault, "");
  for (int index = 0; index < 4; ++index) {
    std::vector<Json> reasons;
    for (const Json& event : *stream.events)
      for (const Json& choice : event["choices"])
        if (choice["index"] == index) reasons.push_back(choice.at("finish_reason"));
    ASSERT_FALSE(reasons.empty());
    EXPECT_EQ(reasons.back(), "stop");
    for (size_t i = 0; i + 1 < reasons.size(); ++i) EXPECT_EQ(reasons[i], nullptr);
  }
}

TEST(Completions, AnErrorBeforeTheFirstTokenOfAStreamIsPlainJson) {
  const StreamAnswer stream = Stops().Stream("/v1/completions", R"({"prompt":"x","temperature":-1})");
  EXPECT_EQ(stream.status, 400);
  EXPECT_EQ((*stream.events)[0]["error"]["param"], "temperature");
}

TEST(Completions, StreamOptionsWithoutAStreamAreA400) {
  EXPECT_EQ(Stops().Post("/v1/completions", R"({"prompt":"x","stream_options":{"include_usage":true}})").status, 400);
}

TEST(Completions, MaskedTokensAndPromptsGiveStrictJson) {
  const JsonAnswer masked = Stops().Post(
      "/v1/completions",
      R"({"prompt":"correct horse","echo":true,"logprobs":5,"allowed_token_ids":[65],"max_tokens":3,"ignore_eos":true})");
  ASSERT_EQ(masked.status, 200);
  EXPECT_EQ((*masked)["choices"][0]["text"], "correct horseAAA");
  EXPECT_FALSE(masked.json->is_discarded());  // nlohmann knows no NaN and no Infinity
  const JsonAnswer top_k =
      Stops().Post("/v1/completions",
                   R"({"prompt":"correct horse","echo":true,"logprobs":1,"temperature":1,"top_k":1,"max_tokens":3})");
  ASSERT_EQ(top_k.status, 200);
  const Json a = (*masked)["choices"][0]["logprobs"]["token_logprobs"];
  const Json b = (*top_k)["choices"][0]["logprobs"]["token_logprobs"];
  for (size_t i = 1; i < std::string("correct horse").size(); ++i)  // prompts are scored on the unmasked logits
    EXPECT_NEAR(a[i].get<double>(), b[i].get<double>(), 1e-5);
}

TEST(Completions, MaskedTokensHaveVllmsFloorWhenProcessedLogprobsAreReported) {
  const TempFolder folder;
  EngineConfig config = ExactConfig(WriteScriptModel(folder, {"one ", "two ", "three"}));
  config.logprobs_mode = "processed_logprobs";
  TestServer server(config);
  const std::string masked = R"("allowed_token_ids":[65],"max_tokens":2,"ignore_eos":true)";
  const JsonAnswer answer = server.Post("/v1/completions", R"({"prompt":"x","logprobs":5,)" + masked + "}");
  ASSERT_EQ(answer.status, 200);
  const Json& logprobs = (*answer)["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["token_logprobs"], Json::parse("[0.0,0.0]"));
  size_t floors = 0;
  for (const auto& [token, value] : logprobs["top_logprobs"][0].items()) floors += value == -9999.0;
  EXPECT_EQ(floors, logprobs["top_logprobs"][0].size() - 1);
  EXPECT_GT(floors, 0u);
  const JsonAnswer chat =
      server.Post("/v1/chat/completions",
                  R"({"messages":[{"role":"user","content":"x"}],"logprobs":true,"top_logprobs":5,)" + masked + "}");
  ASSERT_EQ(chat.status, 200);
  for (const Json& position : (*chat)["choices"][0]["logprobs"]["content"]) {
    EXPECT_EQ(position["logprob"], 0.0);
    ASSERT_EQ(position["top_logprobs"].size(), 5u);
    for (size_t i = 1; i < 5; ++i) EXPECT_EQ(position["top_logprobs"][i]["logprob"], -9999.0);
  }
}

TEST(Completions, EveryLogprobIsFiniteWhenAllLikelyTokensAreBiasedAway) {
  const JsonAnswer answer =
      Stops().Post("/v1/completions",
                   R"({"prompt":"x","logprobs":5,"max_tokens":2,"logit_bias":{"256":-100,"257":-100,"264":-100}})");
  ASSERT_EQ(answer.status, 200);
  for (const Json& top : (*answer)["choices"][0]["logprobs"]["top_logprobs"])
    for (const auto& [token, value] : top.items()) EXPECT_TRUE(std::isfinite(value.get<double>())) << token;
}

TEST(Completions, EchoWithoutTokensScoresThePrompt) {
  for (const char* prompt : {R"("abc")", "[97,98,99]"}) {
    const JsonAnswer answer = Stops().Post(
        "/v1/completions", std::string(R"({"echo":true,"max_tokens":0,"logprobs":1,"prompt":)") + prompt + "}");
    ASSERT_EQ(answer.status, 200);
    const Json& choice = (*answer)["choices"][0];
    EXPECT_EQ(choice["text"], "abc");
    EXPECT_EQ(choice["logprobs"]["token_logprobs"].size(), 3u);
    EXPECT_EQ(choice["logprobs"]["token_logprobs"][0], nullptr);
    EXPECT_TRUE(choice["logprobs"]["token_logprobs"][1].is_number());
    EXPECT_EQ(choice["logprobs"]["text_offset"], Json::parse("[0,1,2]"));
    EXPECT_EQ((*answer)["usage"]["completion_tokens"], 0);
  }
}

TEST(Completions, EchoScoresTwoPromptsAndOneMoreToken) {
  const JsonAnswer two =
      Stops().Post("/v1/completions", R"({"echo":true,"max_tokens":0,"logprobs":1,"prompt":["abc","x"]})");
  EXPECT_EQ((*two)["choices"][0]["text"], "abc");
  EXPECT_EQ((*two)["choices"][1]["text"], "x");
  EXPECT_EQ((*two)["usage"]["prompt_tokens"], 4);
  const JsonAnswer more =
      Stops().Post("/v1/completions", R"({"echo":true,"max_tokens":1,"logprobs":1,"temperature":0,"prompt":"abc"})");
  EXPECT_EQ((*more)["choices"][0]["text"], "abcalpha ");
  EXPECT_EQ((*more)["choices"][0]["logprobs"]["tokens"].size(), 4u);
}

TEST(Completions, AnEchoedStreamSaysWhatTheWholeAnswerSays) {
  const char* body = R"({"prompt":"abc","echo":true,"max_tokens":5,"temperature":0,"logprobs":2})";
  const StreamAnswer stream = Stops().Stream("/v1/completions", body);
  const JsonAnswer whole = Stops().Post("/v1/completions", body);
  EXPECT_EQ(stream.Text(), (*whole)["choices"][0]["text"].get<std::string>());
  Json offsets = Json::array(), tokens = Json::array();
  for (const Json& event : *stream.events) {
    for (const Json& offset : event["choices"][0]["logprobs"]["text_offset"]) offsets.push_back(offset);
    for (const Json& token : event["choices"][0]["logprobs"]["tokens"]) tokens.push_back(token);
  }
  EXPECT_EQ(offsets, (*whole)["choices"][0]["logprobs"]["text_offset"]);
  EXPECT_EQ(tokens, (*whole)["choices"][0]["logprobs"]["tokens"]);
}

TEST(Completions, TheContextClampsTheAnswerAndRefusesThePromptThatFillsIt) {
  const auto post = [](size_t prompt, const std::string& more) {
    return Short().Post("/v1/completions", R"({"temperature":0,"ignore_eos":true,"prompt":")" +
                                               std::string(prompt, 'x') + "\"" + more + "}");
  };
  const JsonAnswer clamped = post(8, R"(,"max_tokens":60)");
  ASSERT_EQ(clamped.status, 200);
  EXPECT_EQ((*clamped)["usage"]["completion_tokens"], 56);
  EXPECT_EQ((*clamped)["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(post(63, R"(,"max_tokens":1)").status, 200);
  for (const auto& [prompt, more] : std::vector<std::pair<size_t, std::string>>{
           {64, R"(,"max_tokens":1)"}, {64, R"(,"max_tokens":0,"echo":true)"}, {65, ""}, {64, ""}}) {
    const JsonAnswer refused = post(prompt, more);
    ASSERT_EQ(refused.status, 400) << prompt << more;
    EXPECT_EQ((*refused)["error"]["code"], 400);
    const std::string message = (*refused)["error"]["message"];
    EXPECT_NE(message.find("64"), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(prompt)), std::string::npos) << message;
  }
}

TEST(Completions, ATextTooLongForAnyTokensIsRefusedBeforeItIsTokenized) {
  const std::string text(64 * 7 + 1, 'x');  // the longest token is "<|end|>"
  for (const std::string& prompt : {"\"" + text + "\"", "[\"x\",\"" + text + "\"]"}) {
    const JsonAnswer refused = Short().Post("/v1/completions", R"({"prompt":)" + prompt + "}");
    ASSERT_EQ(refused.status, 400);
    EXPECT_EQ((*refused)["error"]["param"], "input_text");
  }
  const std::string message = R"({"messages":[{"role":"user","content":")" + text + "\"}]}";
  EXPECT_EQ((*Short().Post("/v1/chat/completions", message))["error"]["param"], "input_text");
  // Tokenizing alone has no context to fit into, as in vLLM.
  EXPECT_EQ((*Short().Post("/tokenize", R"({"prompt":")" + text + "\"}"))["count"], text.size());
  EXPECT_EQ(Short().Post("/tokenize", message).status, 200);
}

constexpr const char* kBadFields[] = {
    R"("prompt":[-1])",
    R"("prompt":[999])",
    R"("prompt":[1099511627776])",
    R"("prompt":[18446744073709551615])",
    R"("prompt":[[]])",
    R"("prompt":[])",
    R"("prompt":"")",
    R"("prompt":[1,"a"])",
    R"("prompt":[1.5])",
    R"("prompt":{})",
    R"("prompt":null)",
    R"("prompt":[null])",
    R"("logit_bias":{"999":1})",
    R"("logit_bias":{"-1":1})",
    R"("logit_bias":{"AI":1})",
    R"("logit_bias":{"5":"a"})",
    R"("logit_bias":[1])",
    R"("logit_bias":{"99999999999":1})",
    R"("stop_token_ids":[999],"min_tokens":1)",
    R"("stop_token_ids":[-1])",
    R"("stop_token_ids":[1099511627776])",
    R"("stop_token_ids":"a")",
    R"("allowed_token_ids":[])",
    R"("allowed_token_ids":[999])",
    R"("stop":"")",
    R"("stop":[""])",
    R"("stop":[1])",
    R"("stop":{})",
    R"("temperature":-1)",
    R"("temperature":"NaN")",
    R"("temperature":1e308)",
    R"("temperature":1e999)",
    R"("top_p":0)",
    R"("top_p":1.5)",
    R"("top_k":-2)",
    R"("min_p":-0.1)",
    R"("n":0)",
    R"("n":-1)",
    R"("n":1000000000)",
    R"("n":1.5)",
    R"("logprobs":1000000)",
    R"("logprobs":-2)",
    R"("prompt_logprobs":-1)",
    R"("prompt_logprobs":-2)",
    R"("prompt_logprobs":1000000)",
    R"("max_tokens":2147483648)",
    R"("max_tokens":9223372036854775808)",
    R"("max_tokens":-1)",
    R"("max_tokens":0)",
    R"("max_tokens":1.5)",
    R"("max_tokens":"many")",
    R"("min_tokens":-1)",
    R"("presence_penalty":3)",
    R"("repetition_penalty":0)",
    R"("bad_words":[""])",
    R"("use_beam_search":true)",
    R"("structured_outputs":{"choice":["a"]})",
    R"("response_format":{"type":"json_object"})",
    R"("cache_salt":"")",
    R"("cache_salt":"a@b")",
    R"("logprob_token_ids":[1])",
    R"("stream_options":{})",
    R"("stream":"yes")",
    R"("stream":true,"stream_options":5)",
    R"("request_id":5)",
    R"("priority":"high")",
    R"("echo":1)",
    R"("seed":"x")",
};

TEST(Completions, EveryBadFieldIsA400AndANeighbourNoticesNothing) {
  const std::string good = R"({"prompt":"n","max_tokens":200,"temperature":0,"ignore_eos":true,"logprobs":1})";
  const StreamAnswer alone = Stops().Stream("/v1/completions", good);
  std::string many = R"("stop":["x")";
  for (int i = 0; i < 100000; ++i) many += ",\"x\"";
  many += "]";
  std::vector<std::string> bodies(std::begin(kBadFields), std::end(kBadFields));
  bodies.push_back(many);

  std::atomic<bool> end{false};
  std::vector<std::string> faults;
  std::thread neighbour([&] {
    do {
      const StreamAnswer again = Stops().Stream("/v1/completions", good);
      if (again.Text() != alone.Text() || !again.fault.empty()) faults.push_back(again.fault + again.Text());
    } while (!end);
  });
  for (const std::string& fields : bodies) {
    const std::string prompt = fields.find("\"prompt\":") == 0 ? "" : R"("prompt":"x",)";
    const JsonAnswer answer = Stops().Post("/v1/completions", "{" + prompt + fields + "}");
    EXPECT_EQ(answer.status, 400) << fields.substr(0, 100) << answer.json->dump().substr(0, 300);
    if (answer.status != 400) continue;
    EXPECT_EQ((*answer)["error"]["code"], 400);
    EXPECT_FALSE((*answer)["error"]["message"].get<std::string>().empty());
  }
  end = true;
  neighbour.join();
  EXPECT_TRUE(faults.empty()) << faults.size() << ": " << faults[0];
}

TEST(Completions, AnEmptyPromptIsFineWhereTheTokenizerAddsBos) {
  const TempFolder folder;
  const std::string path = WriteScriptModel(folder, {"one ", "two ", "three"});
  folder.Write("tokenizer_config.json", R"({"tokenizer_class":"PreTrainedTokenizerFast","bos_token":"<|end|>",)"
                                        R"("eos_token":"<|end|>","add_bos_token":true})");
  TestServer server(ExactConfig(path));
  const JsonAnswer answer = server.Post("/v1/completions", R"({"prompt":"","max_tokens":2,"temperature":0})");
  ASSERT_EQ(answer.status, 200) << answer.json->dump();
  EXPECT_EQ((*answer)["usage"]["prompt_tokens"], 1);
  EXPECT_EQ((*answer)["choices"][0]["text"], "one two ");
  EXPECT_EQ(server.Post("/v1/completions", R"({"prompt":"","add_special_tokens":false})").status, 400);
}

TEST(Completions, NullsEmptyListsAndUnknownFieldsAreFine) {
  for (const char* fields :
       {R"("stop":[])", R"("stop":null)", R"("seed":null,"logit_bias":null,"user":null,"suffix":null,"n":null)",
        R"("store":true,"metadata":{"a":1},"service_tier":"auto","foo":[1])", R"("logit_bias":{"5":1000000000})",
        R"("logit_bias":{})", R"("seed":-1)", R"("use_beam_search":false,"length_penalty":1.0)",
        R"("response_format":{"type":"text"})", R"("model":"m")", R"("model":null)"}) {
    const JsonAnswer answer =
        Stops().Post("/v1/completions", std::string(R"({"prompt":"x","max_tokens":2,)") + fields + "}");
    EXPECT_EQ(answer.status, 200) << fields << answer.json->dump();
  }
}

TEST(Completions, AnUnknownModelIsA404) {
  const JsonAnswer answer = Stops().Post("/v1/completions", R"({"model":"other","prompt":"x"})");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ((*answer)["error"]["type"], "NotFoundError");
  EXPECT_EQ((*answer)["error"]["param"], "model");
}

TEST(Completions, SettingsTooLargeToRepeatForEveryPromptAreRefused) {
  std::string prompts = "\"x\"";
  for (int i = 1; i < 1000; ++i) prompts += ",\"x\"";
  const JsonAnswer answer = Stops().Post(
      "/v1/completions", R"({"stop":[")" + std::string(1 << 20, 's') + R"("],"prompt":[)" + prompts + "]}");
  EXPECT_EQ(answer.status, 400);
}

TEST(Completions, TokenIdsAreReturnedOnRequest) {
  const JsonAnswer answer =
      Stops().Post("/v1/completions", R"({"prompt":"xy","max_tokens":2,"temperature":0,"return_token_ids":true})");
  EXPECT_EQ((*answer)["choices"][0]["prompt_token_ids"], Json::parse("[120,121]"));
  EXPECT_EQ((*answer)["choices"][0]["token_ids"], Json::parse("[256,257]"));
}

}  // namespace
}  // namespace vllm
