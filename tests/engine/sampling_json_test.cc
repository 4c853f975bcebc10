// Sampling settings from a client's JSON object, with the model's defaults.
#include "engine/sampling_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace vllm {
namespace {

SamplingParams Read(const char* json, std::string* mistake = nullptr, const GenerationDefaults& defaults = {}) {
  const base::Json body = base::Json::parse(json);
  base::JsonFields fields(body);
  SamplingParams params = ReadSamplingParams(fields, defaults);
  if (mistake) *mistake = fields.error() ? fields.error()->field : "";
  EXPECT_TRUE(mistake || !fields.error()) << json;
  return params;
}

TEST(SamplingJson, AnEmptyObjectGivesVllmsDefaults) {
  const SamplingParams params = Read("{}");
  EXPECT_EQ(params.n, 1);
  EXPECT_EQ(params.temperature, 1);
  EXPECT_EQ(params.top_p, 1);
  EXPECT_EQ(params.top_k, 0);
  EXPECT_FALSE(params.seed || params.allowed_token_ids);
  EXPECT_TRUE(params.stop.empty() && params.logit_bias.empty());
}

TEST(SamplingJson, EveryFieldIsRead) {
  const SamplingParams params = Read(
      R"({"n":2,"presence_penalty":0.5,"frequency_penalty":-0.5,"repetition_penalty":1.5,"temperature":0.25,
          "top_p":0.75,"top_k":7,"min_p":0.125,"seed":9,"stop":["a","b"],"stop_token_ids":[1,2],"ignore_eos":true,
          "min_tokens":3,"logprob_token_ids":[4],"skip_special_tokens":false,"spaces_between_special_tokens":false,
          "include_stop_str_in_output":true,"logit_bias":{"5":-1.5,"6":2},"allowed_token_ids":[8],"bad_words":["w"]})");
  EXPECT_EQ(params.n, 2);
  EXPECT_EQ(params.presence_penalty, 0.5);
  EXPECT_EQ(params.frequency_penalty, -0.5);
  EXPECT_EQ(params.repetition_penalty, 1.5);
  EXPECT_EQ(params.temperature, 0.25);
  EXPECT_EQ(params.top_p, 0.75);
  EXPECT_EQ(params.top_k, 7);
  EXPECT_EQ(params.min_p, 0.125);
  EXPECT_EQ(params.seed, 9);
  EXPECT_EQ(params.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(params.stop_token_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(params.ignore_eos && params.include_stop_str_in_output);
  EXPECT_FALSE(params.skip_special_tokens || params.spaces_between_special_tokens);
  EXPECT_EQ(params.min_tokens, 3);
  EXPECT_EQ(params.logprob_token_ids, std::vector<int32_t>{4});
  EXPECT_EQ(params.logit_bias, (std::vector<std::pair<int32_t, float>>{{5, -1.5f}, {6, 2.0f}}));
  EXPECT_EQ(params.allowed_token_ids, std::vector<int32_t>{8});
  EXPECT_EQ(params.bad_words, std::vector<std::string>{"w"});
}

TEST(SamplingJson, TheRequestComesBeforeTheModelsDefaults) {
  GenerationDefaults defaults;
  defaults.temperature = 0.6;
  defaults.top_p = 0.9;
  defaults.min_p = 0.1;
  defaults.repetition_penalty = 1.1;
  defaults.top_k = 20;
  const SamplingParams params = Read(R"({"temperature":0,"top_k":null})", nullptr, defaults);
  EXPECT_EQ(params.temperature, 0);
  EXPECT_EQ(params.top_p, 0.9);
  EXPECT_EQ(params.min_p, 0.1);
  EXPECT_EQ(params.repetition_penalty, 1.1);
  EXPECT_EQ(params.top_k, 20);
}

TEST(SamplingJson, MistakesNameTheirField) {
  for (const auto& [json, field] :
       std::vector<std::pair<const char*, const char*>>{{R"({"n":"x"})", "n"},
                                                        {R"({"temperature":"hot"})", "temperature"},
                                                        {R"({"logit_bias":[]})", "logit_bias"},
                                                        {R"({"logit_bias":{"AI":1}})", "logit_bias"},
                                                        {R"({"logit_bias":{"5x":1}})", "logit_bias"},
                                                        {R"({"logit_bias":{"":1}})", "logit_bias"},
                                                        {R"({"logit_bias":{"99999999999":1}})", "logit_bias"},
                                                        {R"({"logit_bias":{"5":"1"}})", "logit_bias"},
                                                        {R"({"stop":[1]})", "stop"},
                                                        {R"({"stop_token_ids":[1.5]})", "stop_token_ids"},
                                                        {R"({"seed":18446744073709551615})", "seed"}}) {
    std::string mistake;
    Read(json, &mistake);
    EXPECT_EQ(mistake, field) << json;
  }
}

TEST(SamplingJson, CountsBeyondAnIntStayOutOfRange) {
  EXPECT_EQ(Read(R"({"n":99999999999})").n, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(Read(R"({"top_k":-99999999999})").top_k, std::numeric_limits<int32_t>::min());
}

}  // namespace
}  // namespace vllm
