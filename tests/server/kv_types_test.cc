// Every type of the KV cache through HTTP: against the plain kernels with the same type, and in every mode of the
// engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/model/tiny_model_util.h"
#include "tests/server/api_server_util.h"

namespace vllm {
namespace {

using base::Json;
using testing::ExactConfig;
using testing::TestServer;

struct Case {
  std::string model;
  vt::DType dtype;
};

class KvTypesOverHttp : public ::testing::TestWithParam<Case> {
 protected:
  KvTypesOverHttp() : folder_(testing::WriteTinyModel(GetParam().model)) {}
  ~KvTypesOverHttp() override { std::filesystem::remove_all(folder_); }

  EngineConfig Config(vt::DeviceType device = vt::DeviceType::kCpu) const {
    EngineConfig config = ExactConfig(folder_);
    config.device = device;
    config.kv_cache_dtype = GetParam().dtype;
    config.max_model_len = 96;
    config.max_num_seqs = 16;
    config.num_gpu_blocks_override = 100;
    return config;
  }
  static std::vector<int32_t> Prompt() {
    std::vector<int32_t> tokens = testing::TinyTokens();
    tokens.resize(40);
    return tokens;
  }
  static Json Request(int max_tokens) {
    return {{"prompt", Prompt()},
            {"max_tokens", max_tokens},
            {"temperature", 0},
            {"ignore_eos", true},
            {"logprobs", 1},
            {"return_token_ids", true},
            {"return_tokens_as_token_ids", true}};
  }
  // Token ids and their log-probabilities.
  static Json Answer(const TestServer& server, const Json& request, size_t choice = 0) {
    const auto answer = server.Post("/v1/completions", request.dump());
    EXPECT_EQ(answer.status, 200) << answer.json->dump().substr(0, 500);
    const Json& one = (*answer)["choices"][choice];
    return {one["token_ids"], one["logprobs"]["token_logprobs"]};
  }
  // What one request alone gives, the prompt in one step.
  Json Alone(int max_tokens) const { return Answer(TestServer(Config()), Request(max_tokens)); }

  const std::string folder_;
};

// The scores of the prompt. Keys and values differ in their last place between kernels, and where one of them is at the
// border between two codes, by a whole step of the cache's type: hence the wide bounds of the 8-bit types.
TEST_P(KvTypesOverHttp, MatchThePlainKernelsWithTheSameType) {
  Json request = Request(1);
  request["echo"] = true;
  const Json expected = Answer(TestServer(Config(vt::DeviceType::kRef)), request)[1];
  const double bound = vt::DTypeBytes(GetParam().dtype) == 1 ? 0.03 : 0.003;
  for (const vt::DeviceType device : {vt::DeviceType::kCpu, vt::DeviceType::kOpaque}) {
    const Json got = Answer(TestServer(Config(device)), request)[1];
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 1; i < got.size(); ++i)
      EXPECT_NEAR(got[i].get<double>(), expected[i].get<double>(), bound) << "position " << i;
  }
}

TEST_P(KvTypesOverHttp, GiveTheSameBitsInChunksOfFive) {
  EngineConfig config = Config();
  config.max_num_batched_tokens = 5;
  config.max_num_seqs = 4;
  TestServer server(config);
  EXPECT_EQ(Answer(server, Request(8)), Alone(8));
  EXPECT_GE(server.engine().stats().chunked_prefills, 7u);
}

TEST_P(KvTypesOverHttp, GiveTheSameBitsFromThePrefixCache) {
  TestServer server(Config());
  const Json cold = Answer(server, Request(8));
  const uint64_t before = server.engine().stats().prefix_cache_hits;
  EXPECT_EQ(Answer(server, Request(8)), cold);
  EXPECT_GT(server.engine().stats().prefix_cache_hits, before);
}

TEST_P(KvTypesOverHttp, GiveTheSameTokensAfterPreemption) {
  const Json alone = Alone(50)[0];
  EngineConfig config = Config();
  config.enable_prefix_caching = false;
  config.scheduler_reserve_full_isl = false;
  uint64_t preemptions = 0;
  for (int blocks = 3; blocks < 40 && preemptions == 0; ++blocks) {
    config.num_gpu_blocks_override = blocks;
    std::unique_ptr<TestServer> server;
    try {
      server = std::make_unique<TestServer>(config);
    } catch (const base::Exception&) {
      continue;
    }
    Json request = Request(50);
    request["prompt"] = std::vector<std::vector<int32_t>>(6, Prompt());
    const auto answer = server->Post("/v1/completions", request.dump());
    ASSERT_EQ(answer.status, 200) << answer.json->dump().substr(0, 500);
    for (const Json& choice : (*answer)["choices"]) EXPECT_EQ(choice["token_ids"], alone);
    preemptions = server->engine().stats().preemptions;
  }
  EXPECT_GT(preemptions, 0u);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* model : {"llama", "gemma2", "qwen3"})
    for (const vt::DType dtype : {vt::DType::kF8E4M3, vt::DType::kI8}) cases.push_back({model, dtype});
  for (const vt::DType dtype : {vt::DType::kBF16, vt::DType::kF16, vt::DType::kF8E5M2})
    cases.push_back({"llama", dtype});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Types, KvTypesOverHttp, ::testing::ValuesIn(Cases()), [](const auto& info) {
  return info.param.model + "_" + std::string(vt::DTypeName(info.param.dtype));
});

}  // namespace
}  // namespace vllm
