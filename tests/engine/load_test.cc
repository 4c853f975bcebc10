// LlmEngine::Load: from a configuration to a running engine, and what is refused on the way.
#include <gtest/gtest.h>

#include <future>

#include "engine/llm_engine.h"
#include "tests/load/model_files_util.h"
#include "tests/model/tiny_model_util.h"

namespace vllm {
namespace {

using namespace testing;

EngineConfig ConfigOf(const std::string& model) {
  EngineConfig config;
  config.model = model;
  config.threads = 1;
  config.max_num_seqs = 4;
  return config;
}

// Greedy ids of an answer.
std::vector<int32_t> Answer(LlmEngine& engine, std::vector<int32_t> prompt, int64_t max_tokens) {
  std::vector<int32_t> ids;
  std::promise<void> done;
  GenerateRequest request;
  request.prompt_token_ids = std::move(prompt);
  request.params.temperature = 0;
  request.params.max_tokens = max_tokens;
  request.params.ignore_eos = true;
  request.on_output = [&](RequestOutput output) {
    for (const ChoiceOutput& choice : output.choices)
      ids.insert(ids.end(), choice.token_ids.begin(), choice.token_ids.end());
    if (output.finished) done.set_value();
  };
  EXPECT_TRUE(engine.Submit(std::move(request)).ok());
  done.get_future().wait();
  return ids;
}

TEST(LoadTest, AnEngineTellsWhatItIs) {
  EngineConfig config = ConfigOf(WriteTinyModel("llama"));
  config.served_model_name = {"tiny", "small"};
  const auto engine = LlmEngine::Load(config);
  const EngineInfo& info = engine->info();
  EXPECT_EQ(info.model_name, "tiny");
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.max_model_len, 256);
  EXPECT_EQ(info.vocab_size, kTinyVocab);
  EXPECT_EQ(info.block_size, 32);
  EXPECT_EQ(info.attention_backend, "CPU_ATTN");
  EXPECT_EQ(info.context_notice, "");
  EXPECT_EQ(info.num_kv_blocks, 4 * 8 + 1);  // four sequences of 256 tokens, and the null block
}

TEST(LoadTest, TheGreedyAnswerIsTheGoldenOne) {
  EngineConfig config = ConfigOf(WriteTinyModel("llama"));
  config.numerics = vt::Numerics::kExact;
  const auto engine = LlmEngine::Load(config);
  const std::vector<float> golden = TinyLogprobs("llama");
  const auto last = golden.end() - kTinyVocab;
  const auto best = static_cast<int32_t>(std::max_element(last, golden.end()) - last);
  EXPECT_EQ(Answer(*engine, TinyTokens(), 1), std::vector{best});
}

TEST(LoadTest, TheOpaqueDeviceAnswersAsTheCpuDoes) {
  EngineConfig config = ConfigOf(WriteTinyModel("gemma3"));
  config.numerics = vt::Numerics::kExact;
  const std::vector<int32_t> expected = Answer(*LlmEngine::Load(config), TinyTokens(), 6);
  config.device = vt::DeviceType::kOpaque;
  EXPECT_EQ(Answer(*LlmEngine::Load(config), TinyTokens(), 6), expected);
}

TEST(LoadTest, AContextBeyondTheModelsIsRefused) {
  EngineConfig config = ConfigOf(WriteTinyModel("llama"));
  config.max_model_len = 257;
  EXPECT_EQ(ErrorOf([&] { LlmEngine::Load(config); }).message,
            "User-specified max_model_len (257) must be between 1 and the model's own maximum of 256");
}

TEST(LoadTest, ABlockSizeOfTwentyFourIsAnInvalidArgument) {
  EngineConfig config = ConfigOf(WriteTinyModel("llama"));
  config.block_size = 24;
  try {
    LlmEngine::Load(config);
    FAIL() << "loaded";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "Block size must be a multiple of 16");
  }
}

TEST(LoadTest, AnUnknownLogprobsModeListsTheKnown) {
  EngineConfig config = ConfigOf(WriteTinyModel("llama"));
  config.logprobs_mode = "cooked";
  EXPECT_NE(ErrorOf([&] { LlmEngine::Load(config); }).message.find("'cooked' is none of raw_logprobs"),
            std::string::npos);
}

TEST(LoadTest, AnExplicitContextThatDoesNotFitIsRefusedWithTheArithmetic) {
  EngineConfig config = ConfigOf(WriteTinyModel("llama"));
  config.max_model_len = 256;
  config.num_gpu_blocks_override = 4;
  const base::Error error = ErrorOf([&] { LlmEngine::Load(config); });
  EXPECT_EQ(error.code, base::ErrorCode::kOutOfMemory);
  EXPECT_NE(error.message.find("the longest that fits is --max-model-len 96"), std::string::npos) << error.message;
}

TEST(LoadTest, ADerivedContextIsShrunkWithOneLine) {
  EngineConfig config = ConfigOf(WriteTinyModel("llama"));
  config.num_gpu_blocks_override = 4;
  const auto engine = LlmEngine::Load(config);
  EXPECT_EQ(engine->info().max_model_len, 96);
  EXPECT_EQ(engine->info().context_notice.find("context shrunk from 256 to 96 tokens"), 0u);
  EXPECT_EQ(Answer(*engine, TinyTokens(), 8).size(), 8u);
}

TEST(LoadTest, ProgressEndsAtOneAndCanStopTheLoad) {
  const EngineConfig config = ConfigOf(WriteTinyModel("llama"));
  double last = 0;
  LlmEngine::Load(config, [&](double fraction) {
    EXPECT_GE(fraction, last);
    last = fraction;
    return true;
  });
  EXPECT_EQ(last, 1);
  EXPECT_EQ(ErrorOf([&] { LlmEngine::Load(config, [](double) { return false; }); }).code, base::ErrorCode::kCancelled);
}

}  // namespace
}  // namespace vllm
