// The slow reference equals transformers on every tiny configuration.
#include "model/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/loaded_model.h"
#include "tests/model/tiny_model_util.h"

namespace vllm {
namespace {

using namespace testing;

class ReferenceTest : public ::testing::TestWithParam<std::string> {};

void ExpectGolden(const std::string& folder, const std::string& name) {
  const auto model = LoadedModel::FromModelDir(folder);
  const std::vector<int32_t> tokens = TinyTokens();
  const std::vector<float> golden = TinyLogprobs(name);
  const std::vector<float> logits = ReferenceLogits(model->spec(), model->bindings(), tokens);
  ASSERT_EQ(logits.size(), golden.size());
  for (size_t t = 0; t < tokens.size(); ++t) {
    double total = 0;
    for (int v = 0; v < kTinyVocab; ++v) total += std::exp(static_cast<double>(logits[t * kTinyVocab + v]));
    for (int v = 0; v < kTinyVocab; ++v)
      ASSERT_NEAR(logits[t * kTinyVocab + v] - std::log(total), golden[t * kTinyVocab + v], 1e-4)
          << "position " << t << " token " << v;
  }
}

TEST_P(ReferenceTest, EqualsTransformers) { ExpectGolden(WriteTinyModel(GetParam()), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Tiny, ReferenceTest, ::testing::ValuesIn(TinyModels()),
                         [](const auto& info) { return info.param; });

// Layers that are all called full see everything, whatever window the configuration names beside them.
TEST(ReferenceWindowTest, AWindowThatNoLayerUsesChangesNothing) {
  for (const std::string name : {"llama", "qwen2"}) {
    const std::string folder = WriteTinyModel(name);
    nlohmann::json config;
    std::ifstream(folder + "/config.json") >> config;
    config["sliding_window"] = 8;
    config["layer_types"] = {"full_attention", "full_attention", "full_attention"};
    if (name == "qwen2") config["use_sliding_window"] = true;
    std::ofstream(folder + "/config.json") << config;
    SCOPED_TRACE(name);
    ExpectGolden(folder, name);
  }
}

TEST(ReferenceWindowTest, OfAPatternOnlyTheLocalLayersHaveTheWindow) {
  const auto model = LoadedModel::FromModelDir(WriteTinyModel("gemma3"));
  std::vector<int> windows;
  for (const spec::Layer& layer : model->spec().layers)
    windows.push_back(std::get<spec::Attention>(layer.subs[0].op).window);
  EXPECT_EQ(windows, (std::vector<int>{8, 8, 8, 0}));
}

}  // namespace
}  // namespace vllm
