// Clients that go and requests that do not fit: nothing stays behind, and nobody waits for them.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/server/api_server_util.h"
#include "tests/server/script_model_util.h"

namespace vllm {
namespace {

using testing::Eventually;
using testing::ExactConfig;
using testing::HttpConnection;
using testing::HttpText;
using testing::JsonAnswer;
using testing::TempFolder;
using testing::TestServer;

TestServer& Server() {
  static const TempFolder folder;
  static TestServer server([] {
    EngineConfig config = ExactConfig(WriteScriptModel(folder, {"one ", "two ", "three"}));
    config.max_model_len = 4096;
    config.num_gpu_blocks_override = 600;
    config.max_num_batched_tokens = 64;
    return config;
  }());
  return server;
}

int64_t OpenDescriptors() {
  int64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

struct GoneCase {
  const char* name;
  bool stream;
  size_t prompt;  // letters; beyond 64 they take several steps
};

class GoneClients : public ::testing::TestWithParam<GoneCase> {};

TEST_P(GoneClients, LeaveNoRequestNoBlockAndNoDescriptor) {
  ASSERT_TRUE(Server().BecomesIdle());
  const int64_t before = OpenDescriptors();
  const std::string body = std::string(R"({"max_tokens":4000,"ignore_eos":true,"temperature":0,"stream":)") +
                           (GetParam().stream ? "true" : "false") + R"(,"prompt":")" +
                           std::string(GetParam().prompt, 'x') + "\"}";
  for (int round = 0; round < 12; ++round) {
    HttpConnection connection(Server().port());
    connection.Send(HttpText("POST", "/v1/completions", body));
    ASSERT_TRUE(Eventually([] { return Server().engine().stats().num_running > 0; }));
    round % 3 == 0 ? connection.Close() : round % 3 == 1 ? connection.Reset() : connection.HalfClose();
    ASSERT_TRUE(Server().BecomesIdle()) << "round " << round;
  }
  EXPECT_TRUE(Eventually([&] { return OpenDescriptors() <= before; })) << OpenDescriptors() << " of " << before;
}

INSTANTIATE_TEST_SUITE_P(Modes, GoneClients,
                         ::testing::Values(GoneCase{"Streaming", true, 5}, GoneCase{"Whole", false, 5},
                                           GoneCase{"WhilePrefilling", true, 3000}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Cancel, OneClientThatGoesLeavesItsNeighbourAlone) {
  const std::string good = R"({"prompt":"n","max_tokens":60,"temperature":0,"ignore_eos":true})";
  const std::string alone = Server().Stream("/v1/completions", good).Text();
  HttpConnection leaving(Server().port());
  leaving.Send(
      HttpText("POST", "/v1/completions", R"({"prompt":"x","max_tokens":3000,"ignore_eos":true,"stream":true,"n":4})"));
  ASSERT_TRUE(leaving.ReceiveUntil("data: "));
  std::thread reset([&] { leaving.Reset(); });
  EXPECT_EQ(Server().Stream("/v1/completions", good).Text(), alone);
  reset.join();
  EXPECT_TRUE(Server().BecomesIdle());
}

// A pool of eight blocks, of which one is the pool's own: 112 tokens.
EngineConfig SmallPool(const TempFolder& folder) {
  EngineConfig config = ExactConfig(WriteScriptModel(folder, {"one ", "two ", "three"}));
  config.num_gpu_blocks_override = 8;
  config.max_model_len = std::nullopt;
  return config;
}

std::string Letters(int prompt, int max_tokens) {
  return R"({"prompt":")" + std::string(prompt, 'x') + R"(","ignore_eos":true,"temperature":0,"max_tokens":)" +
         std::to_string(max_tokens) + "}";
}

TEST(Cancel, AContextThatOneRequestAloneCouldNotUseIsRefusedAtTheStart) {
  const TempFolder folder;
  for (const int64_t context : {128, 2048}) {
    EngineConfig config = SmallPool(folder);
    config.max_model_len = context;
    try {
      TestServer server(config);
      FAIL() << context;
    } catch (const base::Exception& refused) {
      EXPECT_NE(std::string(refused.what()).find("--max-model-len 112"), std::string::npos) << refused.what();
    }
  }
}

TEST(Cancel, ARequestLargerThanTheCacheIsToldAndNobodyWaitsBehindIt) {
  const TempFolder folder;
  TestServer server(SmallPool(folder));
  EXPECT_EQ(server.engine().info().max_model_len, 112);  // shrunk to what the pool holds
  const std::string small = R"({"prompt":"small","max_tokens":2,"temperature":0})";
  for (const int prompt : {500, 128, 113, 112}) {  // 500 tokens, exactly eight and seven blocks
    EXPECT_EQ(server.Post("/v1/completions", Letters(prompt, 4)).status, 400) << prompt;
    EXPECT_EQ(server.Post("/v1/completions", small).status, 200) << prompt;
  }
  const JsonAnswer longest = server.Post("/v1/completions", Letters(100, 112));
  ASSERT_EQ(longest.status, 200);
  EXPECT_EQ((*longest)["usage"]["total_tokens"], 112);
  EXPECT_EQ((*longest)["choices"][0]["finish_reason"], "length");
}

TEST(Cancel, RequestsThatFillThePoolTogetherTakeTurns) {
  const TempFolder folder;
  TestServer server(SmallPool(folder));
  const std::string alone = (*server.Post("/v1/completions", Letters(60, 52)))["choices"][0]["text"];
  std::string request = Letters(60, 52);
  std::string prompts = "[";
  for (int i = 0; i < 4; ++i) prompts += (i ? ",\"" : "\"") + std::string(60, 'x') + "\"";
  request.replace(request.find("\"" + std::string(60, 'x') + "\""), 62, prompts + "]");
  const JsonAnswer answer = server.Post("/v1/completions", request);
  ASSERT_EQ(answer.status, 200) << answer.json->dump();
  for (const auto& choice : (*answer)["choices"]) EXPECT_EQ(choice["text"], alone);
  EXPECT_TRUE(server.BecomesIdle());
}

TEST(Cancel, AnEndOfTheServerEndsItsRequests) {
  const TempFolder folder;
  const auto engine = LlmEngine::Load([&] {
    EngineConfig config = ExactConfig(WriteScriptModel(folder, {"one ", "two ", "three"}));
    config.max_model_len = 4096;
    config.num_gpu_blocks_override = 300;
    return config;
  }());
  auto server = std::make_unique<ApiServer>(*engine, HttpServerOptions{.port = 0}, ApiOptions{});
  server->Start();
  HttpConnection connection(server->port());
  connection.Send(
      HttpText("POST", "/v1/completions", R"({"prompt":"x","max_tokens":4000,"ignore_eos":true,"stream":true})"));
  ASSERT_TRUE(connection.ReceiveUntil("data: "));
  EXPECT_FALSE(server->Stop(1));
  server.reset();
  EXPECT_TRUE(Eventually([&] { return engine->stats().num_running == 0 && engine->stats().kv_blocks_used == 0; }));
}

}  // namespace
}  // namespace vllm
