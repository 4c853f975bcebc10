// Neighbours in the batch and cached prefixes change no token and no log-probability; on a random float32 model.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/model/tiny_model_util.h"
#include "tests/server/api_server_util.h"

namespace vllm {
namespace {

using base::Json;
using testing::ExactConfig;
using testing::JsonAnswer;
using testing::TestServer;

std::unique_ptr<TestServer> Serve(bool prefix_caching) {
  static const std::string folder = testing::WriteTinyModel("llama");
  EngineConfig config = ExactConfig(folder);
  config.max_model_len = 256;
  config.enable_prefix_caching = prefix_caching;
  return std::make_unique<TestServer>(config);
}

std::string Prompt(int length, int salt) {
  Json ids = Json::array();
  for (int i = 0; i < length; ++i) ids.push_back((7 * i * i + salt * i + 5) % testing::kTinyVocab);
  return ids.dump();
}

// One request's tokens and log-probabilities, as text; "" on an error.
std::string Said(const JsonAnswer& answer, int choice = 0) {
  if (answer.status != 200) return "";
  const Json& said = (*answer)["choices"][choice];
  return base::StrCat(said["token_ids"].dump(), said["logprobs"]["token_logprobs"].dump());
}

std::string Request(const std::string& prompt, const std::string& more) {
  return R"({"prompt":)" + prompt +
         R"(,"max_tokens":16,"ignore_eos":true,"logprobs":2,"return_token_ids":true,"return_tokens_as_token_ids":true,)" +
         more + "}";
}

struct Recipe {
  const char* name;
  const char* fields;
};

class InABatch : public ::testing::TestWithParam<Recipe> {};

TEST_P(InABatch, ARequestSaysWhatItSaysAlone) {
  const auto server = Serve(/*prefix_caching=*/false);
  const std::string request = Request(Prompt(21, 3), GetParam().fields);
  const std::string alone = Said(server->Post("/v1/completions", request));
  ASSERT_FALSE(alone.empty());
  EXPECT_EQ(Said(server->Post("/v1/completions", request)), alone);
  for (const int neighbours : {1, 6, 15}) {
    std::vector<std::thread> threads;
    for (int i = 0; i < neighbours; ++i)
      threads.emplace_back([&, i] {
        const std::string fields = i % 3 == 0   ? R"("temperature":1.2)"
                                   : i % 3 == 1 ? R"("temperature":0.8,"seed":42)"
                                                : R"("temperature":0)";
        server->Post("/v1/completions", Request(Prompt(10 + 5 * i, i + 4), fields));
      });
    EXPECT_EQ(Said(server->Post("/v1/completions", request)), alone) << neighbours;
    for (std::thread& thread : threads) thread.join();
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, InABatch,
                         ::testing::Values(Recipe{"Greedy", R"("temperature":0)"},
                                           Recipe{"Seeded", R"("temperature":0.8,"seed":42)"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Neighbours, ChoicesOfOneSeedDifferAndRepeat) {
  const auto server = Serve(false);
  const std::string request = Request(Prompt(12, 3), R"("n":3,"seed":42,"temperature":1.5)");
  const JsonAnswer first = server->Post("/v1/completions", request);
  const JsonAnswer again = server->Post("/v1/completions", request);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Said(first, i), Said(again, i));
  EXPECT_NE(Said(first, 0), Said(first, 1));
  EXPECT_NE(Said(first, 1), Said(first, 2));
  EXPECT_NE(Said(first, 0), Said(first, 2));
}

std::string PromptLogprobs(TestServer& server, int length) {
  const JsonAnswer answer = server.Post(
      "/v1/completions", R"({"max_tokens":1,"temperature":0,"prompt_logprobs":1,"prompt":)" + Prompt(length, 3) + "}");
  return answer.status == 200 ? (*answer)["choices"][0]["prompt_logprobs"].dump() : "";
}

TEST(Neighbours, PromptLogprobsDoNotDependOnWhatIsCached) {
  const auto cold = Serve(/*prefix_caching=*/false), warm = Serve(/*prefix_caching=*/true);
  const std::vector<int> lengths = {15, 16, 17, 32, 33, 48};
  std::vector<int> order = lengths;
  order.insert(order.end(), lengths.rbegin(), lengths.rend());
  for (const int length : lengths) order.insert(order.end(), {length, length});
  for (const int length : order) {
    const std::string expected = PromptLogprobs(*cold, length);
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(PromptLogprobs(*warm, length), expected) << length;
    // A plain request in between fills the cache and takes from it.
    ASSERT_EQ(warm->Post("/v1/completions", Request(Prompt(length, 3), R"("temperature":0)")).status, 200);
  }
  EXPECT_GT(warm->engine().stats().prefix_cache_hits, 0u);
}

}  // namespace
}  // namespace vllm
