// The slow reference equals transformers on every tiny configuration.
#include "model/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/loaded_model.h"
#include "tests/model/tiny_model_util.h"

namespace vllm {
namespace {

using namespace testing;

class ReferenceTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ReferenceTest, EqualsTransformers) {
  const auto model = LoadedModel::FromModelDir(WriteTinyModel(GetParam()));
  const std::vector<int32_t> tokens = TinyTokens();
  const std::vector<float> golden = TinyLogprobs(GetParam());
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

INSTANTIATE_TEST_SUITE_P(Tiny, ReferenceTest, ::testing::ValuesIn(TinyModels()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace vllm
