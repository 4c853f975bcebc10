// Neighbours in the batch and cached prefixes change no token and no log-probability; on a random float32 model.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/model/tiny_model_util.h"
#include "tests/server/api_server_util.h"

namespace vllm {
namespace {

using base::Json;
using testing::Eventually;
using testing::ExactConfig;
using testing::HttpConnection;
using testing::HttpText;
using testing::JsonAnswer;
using testing::TestServer;

// The tiny Llama with room for neighbours that outlast every test.
std::string LongTinyModel() {
  const std::string path = testing::WriteTinyModel("llama");
  Json config;
  std::ifstream(path + "/config.json") >> config;
  config["max_position_embeddings"] = 4096;
  std::ofstream(path + "/config.json") << config;
  return path;
}

std::unique_ptr<TestServer> Serve(bool prefix_caching, vt::DeviceType device = vt::DeviceType::kCpu) {
  static const std::string folder = LongTinyModel();
  EngineConfig config = ExactConfig(folder);
  config.device = device;
  config.max_model_len = 4096;
  config.num_gpu_blocks_override = 4200;
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

// A stream that goes on until its client leaves; every third is seeded, every third greedy.
void StartEndless(HttpConnection& connection, int number) {
  const char* sampling = number % 3 == 0   ? R"("temperature":1.2)"
                         : number % 3 == 1 ? R"("temperature":0.8,"seed":42)"
                                           : R"("temperature":0)";
  connection.Send(HttpText("POST", "/v1/completions",
                           R"({"prompt":)" + Prompt(10 + 5 * number, number + 4) +
                               R"(,"stream":true,"max_tokens":4000,"ignore_eos":true,)" + sampling + "}"));
}

class InABatch : public ::testing::TestWithParam<Recipe> {};

TEST_P(InABatch, ARequestSaysWhatItSaysAlone) {
  const auto server = Serve(/*prefix_caching=*/false);
  const std::string request = Request(Prompt(21, 3), GetParam().fields);
  const std::string alone = Said(server->Post("/v1/completions", request));
  ASSERT_FALSE(alone.empty());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Said(server->Post("/v1/completions", request)), alone);
  for (const int neighbours : {1, 6, 15}) {
    std::vector<std::unique_ptr<HttpConnection>> streams;
    for (int i = 0; i < neighbours; ++i)
      StartEndless(*streams.emplace_back(std::make_unique<HttpConnection>(server->port())), i);
    ASSERT_TRUE(Eventually([&] { return server->engine().stats().num_running == neighbours; }));
    EXPECT_EQ(Said(server->Post("/v1/completions", request)), alone) << neighbours;
    EXPECT_GE(server->engine().stats().num_running, neighbours) << "they were all there to the end";
    streams.clear();
    ASSERT_TRUE(server->BecomesIdle());
  }
}

TEST_P(InABatch, TheOrderOfTwoPromptsChangesNeither) {
  const auto server = Serve(/*prefix_caching=*/false);
  const std::string first = Prompt(21, 3), second = Prompt(34, 8);
  const auto both = [&](const std::string& a, const std::string& b) {
    return server->Post("/v1/completions", Request("[" + a + "," + b + "]", GetParam().fields));
  };
  const std::string one = Said(server->Post("/v1/completions", Request(first, GetParam().fields)));
  const std::string other = Said(server->Post("/v1/completions", Request(second, GetParam().fields)));
  const JsonAnswer in_order = both(first, second), swapped = both(second, first);
  EXPECT_EQ(Said(in_order, 0), one);
  EXPECT_EQ(Said(in_order, 1), other);
  EXPECT_EQ(Said(swapped, 0), other);
  EXPECT_EQ(Said(swapped, 1), one);
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

class SameStep : public ::testing::TestWithParam<vt::DeviceType> {};

TEST_P(SameStep, IdenticalPromptsShareTheBlocksThatTheStepIsFilling) {
  // Two choices arrive together. The second finds the first one's two full blocks, which no step has computed yet.
  const auto cold = Serve(/*prefix_caching=*/false, GetParam()), warm = Serve(/*prefix_caching=*/true, GetParam());
  const std::string request = Request(Prompt(40, 3), R"("n":2,"temperature":1,"top_k":1)");
  const std::string one_token = Request(Prompt(40, 5), R"("n":2,"temperature":1,"top_k":1,"max_tokens":1)");
  ASSERT_EQ(warm->Post("/v1/completions", one_token).status, 200);
  ASSERT_TRUE(warm->BecomesIdle());  // the counters are those of the last step
  EXPECT_EQ(warm->engine().stats().steps, 1u);
  EXPECT_EQ(warm->engine().stats().prefix_cache_hits, 32u);
  EXPECT_EQ(warm->engine().stats().prefix_cache_queries, 80u);

  const JsonAnswer alone = cold->Post("/v1/completions", request), shared = warm->Post("/v1/completions", request);
  ASSERT_TRUE(warm->BecomesIdle());
  EXPECT_EQ(warm->engine().stats().prefix_cache_hits, 64u);
  EXPECT_EQ(cold->engine().stats().prefix_cache_hits, 0u);
  for (const int choice : {0, 1}) EXPECT_EQ(Said(shared, choice), Said(alone, 0)) << choice;
}

TEST_P(SameStep, IdenticalPromptsOfOneRequestAgree) {
  const auto cold = Serve(/*prefix_caching=*/false, GetParam()), warm = Serve(/*prefix_caching=*/true, GetParam());
  const std::string prompt = Prompt(48, 3);  // whole blocks: one token of each is computed all the same
  const std::string alone = Said(cold->Post("/v1/completions", Request(prompt, R"("temperature":0)")));
  const JsonAnswer three =
      warm->Post("/v1/completions", Request("[" + prompt + "," + prompt + "," + prompt + "]", R"("temperature":0)"));
  for (const int choice : {0, 1, 2}) EXPECT_EQ(Said(three, choice), alone) << choice;
  ASSERT_TRUE(warm->BecomesIdle());
  EXPECT_EQ(warm->engine().stats().prefix_cache_hits, 2 * 32u);
}

INSTANTIATE_TEST_SUITE_P(Devices, SameStep, ::testing::Values(vt::DeviceType::kCpu, vt::DeviceType::kOpaque),
                         [](const auto& info) { return info.param == vt::DeviceType::kCpu ? "cpu" : "opaque"; });

}  // namespace
}  // namespace vllm
