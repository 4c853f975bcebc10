// ValidateSamplingParams against what vLLM's SamplingParams says of the same fields (goldens).
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "engine/llm_engine.h"

namespace vllm {
namespace {

using Json = nlohmann::json;

Json ReadGolden() {
  std::ifstream file(VLLM_SOURCE_DIR "/tests/data/sampler/validation.json");
  return Json::parse(file);
}

double NumberOf(const Json& value) {
  if (!value.is_string()) return value;
  return value == "nan" ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
}

SamplingParams ParamsOf(const Json& fields) {
  SamplingParams p;
  const std::map<std::string, double*> numbers = {{"presence_penalty", &p.presence_penalty},
                                                  {"frequency_penalty", &p.frequency_penalty},
                                                  {"repetition_penalty", &p.repetition_penalty},
                                                  {"temperature", &p.temperature},
                                                  {"top_p", &p.top_p},
                                                  {"min_p", &p.min_p}};
  for (const auto& [name, value] : fields.items()) {
    if (numbers.count(name)) *numbers.at(name) = NumberOf(value);
  }
  p.n = fields.value("n", 1);
  p.top_k = fields.value("top_k", 0);
  p.min_tokens = fields.value("min_tokens", 0);
  p.detokenize = fields.value("detokenize", true);
  p.stop = fields.value("stop", p.stop);
  p.bad_words = fields.value("bad_words", p.bad_words);
  p.stop_token_ids = fields.value("stop_token_ids", p.stop_token_ids);
  p.logprob_token_ids = fields.value("logprob_token_ids", p.logprob_token_ids);
  if (fields.contains("max_tokens")) {
    p.max_tokens.reset();
    if (!fields["max_tokens"].is_null()) p.max_tokens = fields["max_tokens"];
  }
  if (fields.contains("seed")) p.seed = fields["seed"];
  if (fields.contains("logprobs")) p.logprobs = fields["logprobs"];
  if (fields.contains("prompt_logprobs")) p.prompt_logprobs = fields["prompt_logprobs"];
  if (fields.contains("allowed_token_ids"))
    p.allowed_token_ids = fields["allowed_token_ids"].get<std::vector<int32_t>>();
  const Json bias = fields.value("logit_bias", Json::object());
  for (const auto& [id, value] : bias.items()) p.logit_bias.emplace_back(std::stoi(id), value.get<float>());
  return p;
}

TEST(ValidateSamplingParamsTest, AgreesWithVllmFieldByField) {
  const Json golden = ReadGolden();
  int refused = 0;
  for (const Json& c : golden["cases"]) {
    SamplingParams params = ParamsOf(c["fields"]);
    const base::Status status = ValidateSamplingParams(params, golden["vocab"], golden["max_logprobs"]);
    if (c.contains("error")) {
      ++refused;
      ASSERT_FALSE(status.ok()) << c["fields"];
      EXPECT_EQ(status.error().code, base::ErrorCode::kInvalidArgument);
      // Python writes the newline of one case raw into the list's repr, as we do.
      EXPECT_EQ(status.error().message, c["error"].get<std::string>());
      continue;
    }
    ASSERT_TRUE(status.ok()) << c["fields"] << status.error().message;
    const Json& after = c["after"];
    EXPECT_EQ(params.temperature, after["temperature"].get<double>());
    EXPECT_EQ(params.top_p, after["top_p"].get<double>());
    EXPECT_EQ(params.top_k, std::max(0, after["top_k"].get<int>()));
    EXPECT_EQ(params.min_p, after["min_p"].get<double>());
    EXPECT_EQ(params.seed.has_value(), !after["seed"].is_null());
    EXPECT_EQ(params.stop_token_ids, after["stop_token_ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(params.all_stop_token_ids, params.stop_token_ids);
    EXPECT_EQ(params.skip_reading_prefix_cache, after["skip_reading_prefix_cache"].get<bool>());
    for (size_t i = 0; i < params.logit_bias.size(); ++i) {
      EXPECT_EQ(params.logit_bias[i].second, after["logit_bias"][i][1].get<float>());
    }
  }
  EXPECT_GT(refused, 40);
}

TEST(ValidateSamplingParamsTest, LongListsAreRefusedWithTheirBound) {
  const auto refusal = [](SamplingParams params) {
    const base::Status status = ValidateSamplingParams(params, 1'000'000, 20);
    return status.ok() ? std::string() : status.error().message;
  };
  SamplingParams params;
  params.allowed_token_ids = std::vector<int32_t>(1025, 3);
  EXPECT_EQ(refusal(params), "Too many allowed token IDs: 1025. The max size is 1024.");
  params = {};
  params.logit_bias.assign(1025, {1, 1.0f});
  EXPECT_EQ(refusal(params), "Too many logit bias tokens: 1025. The max size is 1024.");
  params = {};
  for (int i = 0; i < 129; ++i) params.stop_token_ids.push_back(i);
  EXPECT_EQ(refusal(params), "Too many stop tokens: 129. The max size is 128.");
  params = {};
  params.stop.assign(100'000, "x");
  EXPECT_EQ(refusal(params), "Too many stop strings: 100000. The max size is 256.");
  params = {};
  params.n = 1'000'000'000;
  EXPECT_EQ(refusal(params), "n must be at most 16384, got 1000000000.");
}

TEST(ValidateSamplingParamsTest, UnlimitedLogprobsReachTheVocabulary) {
  SamplingParams params;
  params.logprobs = -1;
  EXPECT_TRUE(ValidateSamplingParams(params, 160, -1).ok());
  params.logprobs = 161;
  EXPECT_FALSE(ValidateSamplingParams(params, 160, -1).ok());
}

}  // namespace
}  // namespace vllm
