// Weights on a device: what is merged, what is shared, how a load is stopped.
#include "model/weights.h"

#include <gtest/gtest.h>

#include "base/result.h"
#include "model/loaded_model.h"
#include "tests/model/tiny_model_util.h"
#include "vt/ops.h"

namespace vllm {
namespace {

using namespace testing;

class WeightsTest : public ::testing::Test {
 protected:
  const ModelWeights& Load(const std::string& name) {
    model_ = LoadedModel::FromModelDir(WriteTinyModel(name));
    model_->LoadWeights(*platform_);
    return model_->weights();
  }
  std::shared_ptr<vt::Platform> platform_ = vt::MakePlatform(vt::DeviceType::kCpu);
  std::unique_ptr<LoadedModel> model_;
};

TEST_F(WeightsTest, LinearsOfOneInputAreMerged) {
  const ModelWeights& weights = Load("llama");
  const vt::PackedWeight* qkv = weights.Linear(Part::kQ, 1);
  EXPECT_EQ(std::pair(qkv->n, qkv->k), std::pair(int64_t{64 + 32 + 32}, int64_t{64}));
  EXPECT_EQ(weights.Linear(Part::kGate, 1)->n, 2 * 80);
  EXPECT_THROW(weights.Linear(Part::kV, 1), base::InternalError);
}

TEST_F(WeightsTest, BiasesAreMergedAsTheirMatricesAre) {
  const ModelWeights& weights = Load("qwen2");
  EXPECT_EQ(weights.Vector(Part::kQBias, 0).elements(), 64 + 32 + 32);
  EXPECT_EQ(weights.Vector(Part::kOutBias, 0).data, nullptr);
}

TEST_F(WeightsTest, ATiedHeadIsTheEmbedding) {
  const ModelWeights& tied = Load("qwen3");
  EXPECT_EQ(tied.Linear(Part::kHead), tied.Linear(Part::kEmbed));
  const ModelWeights& untied = Load("llama");
  EXPECT_NE(untied.Linear(Part::kHead), untied.Linear(Part::kEmbed));
}

TEST_F(WeightsTest, ProgressThatSaysNoStopsTheLoad) {
  const auto model = LoadedModel::FromModelDir(WriteTinyModel("llama"));
  int calls = 0;
  try {
    model->LoadWeights(*platform_, [&](double) { return ++calls < 4; });
    FAIL() << "the load went on";
  } catch (const base::Exception& error) {
    EXPECT_EQ(error.code(), base::ErrorCode::kCancelled);
  }
  EXPECT_EQ(calls, 4);
  EXPECT_THROW(model->weights(), base::InternalError);
}

TEST_F(WeightsTest, BytesAreThoseOfTheMatrices) {
  const ModelWeights& weights = Load("llama");
  const uint64_t layer = 64 * (64 + 32 + 32) + 64 * 64 + 3 * 64 * 80;
  EXPECT_EQ(weights.source_bytes(), 4 * (3 * layer + 2 * 96 * 64));
}

}  // namespace
}  // namespace vllm
