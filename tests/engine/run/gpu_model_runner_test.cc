// The runner: refusals in their order, rows by logits_indices, prompt scores across chunks.
#include "engine/run/gpu_model_runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "engine/kv/kv_cache_config.h"
#include "tests/model/tiny_model_util.h"

namespace vllm {
namespace {

using namespace testing;

struct Rig {
  std::shared_ptr<vt::Platform> platform = vt::MakePlatform(vt::DeviceType::kCpu);
  std::unique_ptr<LoadedModel> model;
  std::unique_ptr<GPUModelRunner> runner;

  explicit Rig(const std::string& folder) {
    model = LoadedModel::FromModelDir(folder);
    model->LoadWeights(*platform);
    runner = std::make_unique<GPUModelRunner>(
        *model, *platform,
        RunnerOptions{
            .numerics = vt::Numerics::kExact, .max_num_seqs = 4, .max_num_batched_tokens = 64, .max_model_len = 64});
  }
  KvCacheConfig Cache(int block_size) const {
    return MakeKvCacheConfig(MakeKvCacheGroups(KvCacheSpecsOf(model->spec(), block_size, vt::DType::kF32)), 0, 32);
  }
};

NewRequestData Request(RequestId id, const std::vector<int32_t>& tokens, SamplingParams params,
                       std::vector<int32_t> blocks) {
  return {.id = id,
          .params = std::make_shared<SamplingParams>(std::move(params)),
          .seed = 1,
          .token_ids = tokens,
          .num_prompt_tokens = static_cast<int64_t>(tokens.size()),
          .block_ids = {std::move(blocks)}};
}

TEST(GpuModelRunnerTest, RefusesABlockSizeThatIsNoMultipleOf16BeforeAnythingElse) {
  Rig rig(WriteTinyModel("llama"));
  KvCacheConfig config = rig.Cache(16);
  config.groups[0].spec.block_size = 24;
  config.num_blocks = -1;  // also wrong, and not what is told
  try {
    rig.runner->initialize_kv_cache(config);
    FAIL() << "a block size of 24";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "Block size must be a multiple of 16");
  }
}

TEST(GpuModelRunnerTest, RefusesAHeadSizeThatNoBackendServes) {
  const std::string folder = WriteTinyModel("llama");
  const std::filesystem::path path = std::filesystem::path(folder) / "config.json";
  nlohmann::json config;
  std::ifstream(path) >> config;
  config["head_dim"] = 4, config["num_attention_heads"] = 16, config["num_key_value_heads"] = 8;  // the same tensors
  std::ofstream(path) << config;
  try {
    Rig rig(folder);
    FAIL() << "heads of 4";
  } catch (const base::Exception& error) {
    EXPECT_STREQ(error.what(),
                 "No valid attention backend for device type 0 from {CPU_ATTN: [head_size not supported], FLASH_ATTN: "
                 "[head_size not supported]}");
  }
}

TEST(GpuModelRunnerTest, SamplesTheRowsThatAskedAndNoOthers) {
  Rig rig(WriteTinyModel("llama"));
  rig.runner->initialize_kv_cache(rig.Cache(16));
  const std::vector<int32_t> prompt = TinyTokens();
  SamplingParams greedy;
  greedy.temperature = 0;
  SchedulerOutput step;
  step.new_requests = {Request(1, {prompt.begin(), prompt.begin() + 20}, greedy, {1, 2}),
                       Request(2, prompt, greedy, {3, 4, 5})};
  step.scheduled = {{.id = 1, .num_tokens = 20, .samples = true}, {.id = 2, .num_tokens = 30, .samples = false}};
  step.total_tokens = 50;
  const ModelRunnerOutput output = rig.runner->ExecuteModel(step).get();
  ASSERT_EQ(output.sequences.size(), 2u);
  EXPECT_EQ(output.sequences[0].token_ids.size(), 1u);
  EXPECT_TRUE(output.sequences[1].token_ids.empty());
  // The likeliest token after 20 of the golden's tokens.
  const std::vector<float> golden = TinyLogprobs("llama");
  const auto row = golden.begin() + 19 * kTinyVocab;
  EXPECT_EQ(output.sequences[0].token_ids[0], std::max_element(row, row + kTinyVocab) - row);
}

TEST(GpuModelRunnerTest, ScoresAPromptOverSeveralStepsOnce) {
  Rig rig(WriteTinyModel("llama"));
  rig.runner->initialize_kv_cache(rig.Cache(16));
  const std::vector<int32_t> prompt = TinyTokens();
  SamplingParams params;
  params.prompt_logprobs = 0;
  SchedulerOutput step;
  step.new_requests = {Request(7, prompt, params, {1, 2, 3})};
  step.scheduled = {{.id = 7, .num_tokens = 25, .samples = false}};
  EXPECT_TRUE(rig.runner->ExecuteModel(step).get().sequences[0].prompt_logprobs.empty());
  SchedulerOutput rest;
  rest.cached_requests = {{.id = 7, .num_computed_tokens = 25, .new_block_ids = {{}}}};
  rest.scheduled = {{.id = 7, .num_tokens = 15, .samples = true}};
  const auto scored = rig.runner->ExecuteModel(rest).get().sequences[0].prompt_logprobs;
  ASSERT_EQ(scored.size(), prompt.size());
  EXPECT_FALSE(scored[0].has_value());
  const std::vector<float> golden = TinyLogprobs("llama");
  for (size_t i = 1; i < prompt.size(); ++i)
    EXPECT_NEAR(scored[i]->front().logprob, golden[(i - 1) * kTinyVocab + prompt[i]], 1e-4) << i;
}

TEST(GpuModelRunnerTest, AFailedStepIsAnExceptionInItsFuture) {
  Rig rig(WriteTinyModel("llama"));
  rig.runner->initialize_kv_cache(rig.Cache(16));
  SchedulerOutput step;
  step.cached_requests = {{.id = 99}};
  step.scheduled = {{.id = 99, .num_tokens = 1}};
  EXPECT_THROW(rig.runner->ExecuteModel(step).get(), base::InternalError);
}

}  // namespace
}  // namespace vllm
