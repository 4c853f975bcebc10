// Tiny checkpoints of every family against transformers' log-probabilities, through HTTP, in every mode of the engine.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/model/tiny_model_util.h"
#include "tests/server/api_server_util.h"

namespace vllm {
namespace {

using base::Json;
using testing::ExactConfig;
using testing::JsonAnswer;
using testing::kTinyVocab;
using testing::TestServer;
using testing::TinyLogprobs;
using testing::TinyTokens;

constexpr double kTolerance = 1e-4;

struct Case {
  std::string model;
  vt::DeviceType device;
};

class TinyModelsOverHttp : public ::testing::TestWithParam<Case> {
 protected:
  TinyModelsOverHttp() : folder_(testing::WriteTinyModel(GetParam().model)), golden_(TinyLogprobs(GetParam().model)) {}
  ~TinyModelsOverHttp() override { std::filesystem::remove_all(folder_); }

  EngineConfig Config() const {
    EngineConfig config = ExactConfig(folder_);
    config.device = GetParam().device;
    config.max_model_len = 128;
    config.max_num_seqs = 16;
    config.num_gpu_blocks_override = 100;
    return config;
  }
  static std::vector<int32_t> Head(size_t length) {
    std::vector<int32_t> tokens = TinyTokens();
    tokens.resize(length);
    return tokens;
  }
  // A request that scores its prompt and the whole vocabulary's best after it.
  static std::string Request(const std::vector<int32_t>& prompt, int max_tokens = 1) {
    return Json{{"prompt", prompt},
                {"max_tokens", max_tokens},
                {"temperature", 0},
                {"ignore_eos", true},
                {"echo", true},
                {"logprobs", 1},
                {"return_token_ids", true},
                {"return_tokens_as_token_ids", true}}
        .dump();
  }
  double Golden(size_t position, int32_t token) const { return golden_[position * kTinyVocab + token]; }
  // Every prompt position, and the first generated token, against the golden values.
  void ExpectGolden(const JsonAnswer& answer, const std::vector<int32_t>& prompt, size_t index = 0) const {
    ASSERT_EQ(answer.status, 200) << answer.json->dump().substr(0, 500);
    const Json& choice = (*answer)["choices"][index];
    const Json& scores = choice["logprobs"]["token_logprobs"];
    ASSERT_GT(scores.size(), prompt.size());
    EXPECT_EQ(scores[0], nullptr);
    for (size_t i = 1; i < prompt.size(); ++i)
      EXPECT_NEAR(scores[i].get<double>(), Golden(i - 1, prompt[i]), kTolerance) << "position " << i;
    const int32_t first = choice["token_ids"][0].get<int32_t>();
    EXPECT_NEAR(scores[prompt.size()].get<double>(), Golden(prompt.size() - 1, first), kTolerance) << "generated";
  }

  const std::string folder_;
  const std::vector<float> golden_;
};

TEST_P(TinyModelsOverHttp, MatchAtLengthsAroundTheBlockSize) {
  TestServer server(Config());
  for (const size_t length : {15, 16, 17, 31, 32, 33, 40})
    ExpectGolden(server.Post("/v1/completions", Request(Head(length))), Head(length));
}

TEST_P(TinyModelsOverHttp, MatchInChunksOfFive) {
  EngineConfig config = Config();
  config.max_num_batched_tokens = 5;
  config.max_num_seqs = 4;
  TestServer server(config);
  ExpectGolden(server.Post("/v1/completions", Request(Head(40))), Head(40));
  EXPECT_GE(server.engine().stats().chunked_prefills, 7u);
}

TEST_P(TinyModelsOverHttp, MatchWithSevenNeighbours) {
  TestServer server(Config());
  const uint64_t steps = server.engine().stats().steps;
  std::vector<std::thread> threads;
  for (int i = 0; i < 7; ++i)
    threads.emplace_back([&, i] { server.Post("/v1/completions", Request(Head(10 + 4 * i), 80)); });
  ExpectGolden(server.Post("/v1/completions", Request(Head(40), 8)), Head(40));
  for (std::thread& thread : threads) thread.join();
  // 7 × 80 + 8 tokens in far fewer steps: they shared them.
  EXPECT_LT(server.engine().stats().steps - steps, 284u);
}

TEST_P(TinyModelsOverHttp, MatchAfterPreemption) {
  EngineConfig config = Config();
  config.max_model_len = 96;
  config.enable_prefix_caching = false;
  config.scheduler_reserve_full_isl = false;
  const Json alone = (*TestServer(config).Post("/v1/completions", Request(Head(40), 50)))["choices"][0]["token_ids"];
  // From the smallest pool that holds one request: how many it takes for several to collide depends on the windows.
  uint64_t preemptions = 0;
  for (int blocks = 3; blocks < 40 && preemptions == 0; ++blocks) {
    config.num_gpu_blocks_override = blocks;
    std::unique_ptr<TestServer> server;
    try {
      server = std::make_unique<TestServer>(config);
    } catch (const base::Exception&) {
      continue;
    }
    Json request = Json::parse(Request(Head(40), 50));  // six prompts of one request arrive together
    request["prompt"] = std::vector<std::vector<int32_t>>(6, Head(40));
    const JsonAnswer answer = server->Post("/v1/completions", request.dump());
    for (size_t i = 0; i < 6; ++i) ExpectGolden(answer, Head(40), i);
    if (HasFatalFailure()) return;
    for (const Json& choice : (*answer)["choices"]) EXPECT_EQ(choice["token_ids"], alone);
    preemptions = server->engine().stats().preemptions;
  }
  EXPECT_GT(preemptions, 0u);
}

TEST_P(TinyModelsOverHttp, MatchFromThePrefixCache) {
  TestServer server(Config());
  // Without prompt scores, which would read no cache: the generated tokens are compared.
  const std::string request = Json{
      {"prompt", Head(40)},
      {"max_tokens", 8},
      {"temperature", 0},
      {"ignore_eos", true},
      {"logprobs", 3},
      {"return_token_ids", true},
      {"return_tokens_as_token_ids",
       true}}.dump();
  const JsonAnswer cold = server.Post("/v1/completions", request);
  const uint64_t before = server.engine().stats().prefix_cache_hits;
  const JsonAnswer warm = server.Post("/v1/completions", request);
  EXPECT_GT(server.engine().stats().prefix_cache_hits, before);
  const Json &a = (*cold)["choices"][0], &b = (*warm)["choices"][0];
  EXPECT_EQ(a["token_ids"], b["token_ids"]);
  const int32_t first = b["token_ids"][0].get<int32_t>();
  EXPECT_NEAR(b["logprobs"]["token_logprobs"][0].get<double>(), Golden(39, first), kTolerance);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(a["logprobs"]["token_logprobs"][i].get<double>(), b["logprobs"]["token_logprobs"][i].get<double>(),
                kTolerance);
}

TEST_P(TinyModelsOverHttp, MatchWhenChoicesShareBlocksThatTheirStepFills) {
  TestServer server(Config());
  const JsonAnswer answer = server.Post("/v1/completions", Json{{"prompt", Head(40)},
                                                                {"n", 3},
                                                                {"max_tokens", 8},
                                                                {"temperature", 1},
                                                                {"top_k", 1},
                                                                {"ignore_eos", true},
                                                                {"logprobs", 1},
                                                                {"return_token_ids", true}}
                                                               .dump());
  ASSERT_EQ(answer.status, 200) << answer.json->dump();
  ASSERT_TRUE(server.BecomesIdle());  // the counters are those of the last step
  EXPECT_GT(server.engine().stats().prefix_cache_hits, 0u);
  EXPECT_LE(server.engine().stats().steps, 9u) << "all three ran in the same steps";
  const Json& choices = (*answer)["choices"];
  const int32_t first = choices[0]["token_ids"][0].get<int32_t>();
  EXPECT_NEAR(choices[0]["logprobs"]["token_logprobs"][0].get<double>(), Golden(39, first), kTolerance);
  for (const int i : {1, 2}) {
    EXPECT_EQ(choices[i]["token_ids"], choices[0]["token_ids"]);
    for (size_t t = 0; t < 8; ++t)
      EXPECT_NEAR(choices[i]["logprobs"]["token_logprobs"][t].get<double>(),
                  choices[0]["logprobs"]["token_logprobs"][t].get<double>(), kTolerance);
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const std::string& model : testing::TinyModels())
    for (const vt::DeviceType device : {vt::DeviceType::kCpu, vt::DeviceType::kOpaque})
      cases.push_back({model, device});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Families, TinyModelsOverHttp, ::testing::ValuesIn(Cases()), [](const auto& info) {
  return info.param.model + (info.param.device == vt::DeviceType::kCpu ? "_cpu" : "_opaque");
});

}  // namespace
}  // namespace vllm
