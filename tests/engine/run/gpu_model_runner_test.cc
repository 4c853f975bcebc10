// The runner: refusals in their order, rows by logits_indices, prompt scores across chunks.
#include "engine/run/gpu_model_runner.h"

#include <gtest/gtest.h>

#include <atomic>
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

// The opaque device, counting the bytes that its queues copy to the host.
class CountingPlatform : public vt::Platform {
 public:
  const vt::PlatformInfo& info() const override { return device_->info(); }
  vt::Buffer Allocate(size_t bytes) override { return device_->Allocate(bytes); }
  std::unique_ptr<vt::Queue> MakeQueue() override { return std::make_unique<Queue>(device_->MakeQueue(), &bytes_); }
  // Bytes since the last call.
  int64_t TakeBytes() { return bytes_.exchange(0); }

 private:
  class Queue : public vt::Queue {
   public:
    Queue(std::unique_ptr<vt::Queue> queue, std::atomic<int64_t>* bytes) : queue_(std::move(queue)), bytes_(bytes) {}
    void Launch(const vt::OpKernel& kernel, const vt::OpArgs& args, const vt::KernelOptions& options) override {
      queue_->Launch(kernel, args, options);
    }
    void CopyAsync(vt::Tensor dst, vt::Tensor src) override {
      if (dst.device.type == vt::DeviceType::kCpu) *bytes_ += src.bytes();
      queue_->CopyAsync(dst, src);
    }
    vt::Event Record() override { return queue_->Record(); }
    void Wait(vt::Event event) override { queue_->Wait(event); }

   private:
    std::unique_ptr<vt::Queue> queue_;
    std::atomic<int64_t>* bytes_;
  };

  std::shared_ptr<vt::Platform> device_ = vt::MakePlatform(vt::DeviceType::kOpaque);
  std::atomic<int64_t> bytes_{0};
};

struct Rig {
  std::shared_ptr<vt::Platform> platform;
  std::unique_ptr<LoadedModel> model;
  std::unique_ptr<GPUModelRunner> runner;

  explicit Rig(const std::string& folder, std::shared_ptr<vt::Platform> device = vt::MakePlatform(vt::DeviceType::kCpu))
      : platform(std::move(device)) {
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

// One sequence for each of these, all with the same prompt.
std::vector<SamplingParams> MixedParams() {
  std::vector<SamplingParams> all(4);
  all[0].temperature = 0;
  all[1].temperature = 0, all[1].logprobs = 2;
  all[2].temperature = 1.5;
  all[3].temperature = 1.5, all[3].top_p = 0.9;
  return all;
}

SchedulerOutput StepOf(const std::vector<SamplingParams>& params) {
  SchedulerOutput step;
  for (size_t i = 0; i < params.size(); ++i) {
    const std::vector<int32_t> prompt = TinyTokens();
    step.new_requests.push_back(
        Request(i + 1, {prompt.begin(), prompt.begin() + 9}, params[i], {static_cast<int32_t>(i + 1)}));
    step.new_requests.back().seed = 5 + i;
    step.scheduled.push_back({.id = i + 1, .num_tokens = 9, .samples = true});
    step.total_tokens += 9;
  }
  return step;
}

TEST(GpuModelRunnerTest, CopiesLogitsOfThoseRowsOnlyThatNeedThem) {
  const auto platform = std::make_shared<CountingPlatform>();
  Rig rig(WriteTinyModel("llama"), platform);
  rig.runner->initialize_kv_cache(rig.Cache(16));
  constexpr int64_t kMaximum = 8, kRow = kTinyVocab * 4;  // bytes
  const std::vector<SamplingParams> params = MixedParams();
  platform->TakeBytes();
  rig.runner->ExecuteModel(StepOf({params[0], params[0], params[0]})).get();
  EXPECT_EQ(platform->TakeBytes(), 3 * kMaximum);
  rig.runner->ExecuteModel(StepOf(params)).get();
  EXPECT_EQ(platform->TakeBytes(), 4 * kMaximum + 3 * kRow);
}

TEST(GpuModelRunnerTest, ARowIsSampledTheSameAloneAndAmongOthers) {
  for (const vt::DeviceType device : {vt::DeviceType::kCpu, vt::DeviceType::kOpaque}) {
    Rig rig(WriteTinyModel("llama"), vt::MakePlatform(device));
    rig.runner->initialize_kv_cache(rig.Cache(16));
    const SchedulerOutput all = StepOf(MixedParams());
    const ModelRunnerOutput together = rig.runner->ExecuteModel(all).get();
    for (size_t i = 0; i < all.scheduled.size(); ++i) {
      SchedulerOutput step;
      step.new_requests = {all.new_requests[i]};
      step.scheduled = {all.scheduled[i]};
      const SequenceOutput alone = rig.runner->ExecuteModel(step).get().sequences[0];
      EXPECT_EQ(alone.token_ids, together.sequences[i].token_ids) << i;
      ASSERT_EQ(alone.logprobs.size(), together.sequences[i].logprobs.size());
      for (size_t p = 0; p < alone.logprobs.size(); ++p)
        for (size_t k = 0; k < alone.logprobs[p].size(); ++k)
          EXPECT_EQ(alone.logprobs[p][k].logprob, together.sequences[i].logprobs[p][k].logprob);
    }
  }
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
