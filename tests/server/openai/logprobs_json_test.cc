// Log-probabilities in the two shapes of the OpenAI API.
#include "server/openai/logprobs_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/server/fake_engine.h"

namespace vllm {
namespace {

using testing::ByteTokenizerJson;

class LogprobsJson : public ::testing::Test {
 protected:
  std::unique_ptr<Tokenizer> tokenizer_ = Tokenizer::FromTokenizerJson(ByteTokenizerJson());
  const PositionLogprobs position_ = {{'a', -1.5f, 3}, {'b', -0.5f, 1}, {'c', -1.0f, 2}, {'a', -1.5f, 3}};
};

TEST_F(LogprobsJson, CompletionsListTheTopAndTheToken) {
  int64_t offset = 4;
  const std::vector<int32_t> ids = {'x', 'a'};
  const std::vector<std::optional<PositionLogprobs>> positions = {std::nullopt, position_};
  const base::Json json = CompletionLogprobs(*tokenizer_, ids, positions, {.top = 2}, offset);
  EXPECT_EQ(base::DumpJson(json), R"({"text_offset":[4,5],"token_logprobs":[null,-1.5],"tokens":["x","a"],)"
                                  R"("top_logprobs":[null,{"a":-1.5,"b":-0.5,"c":-1.0}]})");
  EXPECT_EQ(offset, 6);
}

TEST_F(LogprobsJson, TokensCanBeNamedById) {
  int64_t offset = 0;
  const std::vector<int32_t> ids = {'a'};
  const std::vector<std::optional<PositionLogprobs>> positions = {position_};
  const base::Json json = CompletionLogprobs(*tokenizer_, ids, positions, {.top = 0, .as_token_ids = true}, offset);
  EXPECT_EQ(json["tokens"][0], "token_id:97");
  EXPECT_EQ(json["top_logprobs"][0].size(), 1u);
}

TEST_F(LogprobsJson, MinusInfinityBecomesVllmsFloor) {
  int64_t offset = 0;
  const std::vector<int32_t> ids = {'a'};
  const std::vector<std::optional<PositionLogprobs>> positions = {
      PositionLogprobs{{'a', -std::numeric_limits<float>::infinity(), 1}}};
  const base::Json json = CompletionLogprobs(*tokenizer_, ids, positions, {}, offset);
  EXPECT_EQ(json["token_logprobs"][0], -9999.0);
}

TEST_F(LogprobsJson, TokensOfTheSameTextShareOneEntryWithTheLastValue) {
  int64_t offset = 0;
  const std::vector<int32_t> ids = {0xC3};
  const std::vector<std::optional<PositionLogprobs>> positions = {PositionLogprobs{{0xC3, -1.0f, 1}, {0xA9, -2.0f, 2}}};
  const base::Json json = CompletionLogprobs(*tokenizer_, ids, positions, {.top = 2}, offset);
  EXPECT_EQ(base::DumpJson(json["top_logprobs"][0]), "{\"\uFFFD\":-2.0}");
}

TEST_F(LogprobsJson, ChatCarriesBytesAndTheTopAlone) {
  const std::vector<PositionLogprobs> positions = {position_};
  const base::Json json = ChatLogprobs(*tokenizer_, positions, {.top = 2});
  const base::Json& entry = json["content"][0];
  EXPECT_EQ(entry["token"], "a");
  EXPECT_EQ(entry["bytes"], base::Json::parse("[97]"));
  EXPECT_EQ(entry["top_logprobs"].size(), 2u);
}

TEST_F(LogprobsJson, PromptsAreListedByIdWithRankAndText) {
  const std::vector<std::optional<PositionLogprobs>> positions = {std::nullopt, PositionLogprobs{{'a', -1.5f, 3}}};
  EXPECT_EQ(base::DumpJson(PromptLogprobs(*tokenizer_, positions)),
            R"([null,{"97":{"logprob":-1.5,"rank":3,"decoded_token":"a"}}])");
}

TEST_F(LogprobsJson, AWholeVocabularyIsListedInLinearTime) {
  PositionLogprobs all;
  for (int32_t id = 0; id < 300000; ++id) all.push_back({id, -1.0f, id + 1});
  const std::vector<std::optional<PositionLogprobs>> positions = {all};
  EXPECT_EQ(PromptLogprobs(*tokenizer_, positions)[0].size(), 300000u);
}

}  // namespace
}  // namespace vllm
