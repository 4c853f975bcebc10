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

TEST(Cancel, ARequestLargerThanTheCacheNeverBlocksTheOthers) {
  const TempFolder folder;
  EngineConfig config = ExactConfig(WriteScriptModel(folder, {"one ", "two ", "three"}));
  config.num_gpu_blocks_override = 8;
  config.max_model_len = 2048;
  std::unique_ptr<TestServer> server;
  try {
    server = std::make_unique<TestServer>(config);
  } catch (const base::Exception& refused) {  // refused at start: a context that one request alone could not use
    EXPECT_NE(std::string(refused.what()).find("2048"), std::string::npos) << refused.what();
    return;
  }
  for (const auto& [prompt, max_tokens] : std::vector<std::pair<int, int>>{{500, 5}, {100, 1000}, {112, 1}, {128, 1}}) {
    server->Post("/v1/completions", R"({"prompt":")" + std::string(prompt, 'x') +
                                        R"(","ignore_eos":true,"max_tokens":)" + std::to_string(max_tokens) + "}");
    EXPECT_EQ(server->Post("/v1/completions", R"({"prompt":"small","max_tokens":2})").status, 200) << prompt;
  }
}

TEST(Cancel, AContextThatJustFitsThePoolIsServedToItsEnd) {
  const TempFolder folder;
  EngineConfig config = ExactConfig(WriteScriptModel(folder, {"one ", "two ", "three"}));
  config.num_gpu_blocks_override = 8;  // one of them is the pool's own
  config.max_model_len = 7 * 16;
  TestServer server(config);
  const JsonAnswer answer =
      server.Post("/v1/completions", R"({"prompt":"small","ignore_eos":true,"max_tokens":112,"temperature":0})");
  ASSERT_EQ(answer.status, 200) << answer.json->dump();
  EXPECT_EQ((*answer)["usage"]["total_tokens"], 112);
  EXPECT_EQ(server.Post("/v1/completions", R"({"prompt":"next","max_tokens":2})").status, 200);
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
