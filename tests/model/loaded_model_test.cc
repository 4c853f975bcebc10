// What a loaded model tells people of itself.
#include "model/loaded_model.h"

#include <gtest/gtest.h>

#include "base/result.h"
#include "tests/model/tiny_model_util.h"

namespace vllm {
namespace {

using namespace testing;

TEST(LoadedModelTest, ParametersCountATiedHeadOnce) {
  const int64_t layer = 64 * (64 + 32 + 32) + 64 * 64 + 3 * 64 * 80 + 2 * 64;
  EXPECT_EQ(LoadedModel::FromModelDir(WriteTinyModel("llama"))->parameters(), 3 * layer + 2 * 96 * 64 + 64);
  const int64_t with_norms = layer + 2 * 16;
  EXPECT_EQ(LoadedModel::FromModelDir(WriteTinyModel("qwen3"))->parameters(), 3 * with_norms + 96 * 64 + 64);
}

TEST(LoadedModelTest, FormatsAreToldWithTheirBytes) {
  EXPECT_EQ(LoadedModel::FromModelDir(WriteTinyModel("llama"))->FormatSummary(), "F32 374 KiB");
}

TEST(LoadedModelTest, TheCardNamesWindowsCapsAndNorms) {
  const std::string gemma = LoadedModel::FromModelDir(WriteTinyModel("gemma2"))->Card();
  EXPECT_NE(gemma.find("type gemma2, 4 layers, width 64, vocabulary 96"), std::string::npos) << gemma;
  EXPECT_NE(gemma.find("2 x attention: 4 heads, 2 KV heads of 16, window 8"), std::string::npos) << gemma;
  EXPECT_NE(gemma.find("soft-cap 0.5"), std::string::npos) << gemma;
  EXPECT_NE(gemma.find("head: tied to the embedding, soft-cap 2"), std::string::npos) << gemma;
  const std::string qwen = LoadedModel::FromModelDir(WriteTinyModel("qwen3"))->Card();
  EXPECT_NE(qwen.find("QK norm"), std::string::npos) << qwen;
}

TEST(LoadedModelTest, WeightsBeforeTheirLoadAreOurBug) {
  const auto model = LoadedModel::FromModelDir(WriteTinyModel("llama"));
  EXPECT_THROW(model->weights(), base::InternalError);
}

}  // namespace
}  // namespace vllm
