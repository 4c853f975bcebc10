// Binding: every tensor has its part, and a checkpoint that does not fit its configuration is refused by name.
#include "model/bind/bind.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/result.h"
#include "model/loaded_model.h"
#include "tests/model/tiny_model_util.h"

namespace vllm {
namespace {

using namespace testing;

// Replaces a text of the same length in the safetensors header.
void Rename(const std::string& folder, const std::string& from, const std::string& to) {
  const std::string path = folder + "/model.safetensors";
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  std::string bytes = text.str();
  bytes.replace(bytes.find(from), from.size(), to);
  std::ofstream(path, std::ios::binary) << bytes;
}

void SetConfig(const std::string& folder, const std::string& key, const nlohmann::json& value) {
  nlohmann::json config;
  std::ifstream(folder + "/config.json") >> config;
  config[key] = value;
  std::ofstream(folder + "/config.json") << config;
}

std::string Refusal(const std::string& folder) {
  try {
    LoadedModel::FromModelDir(folder);
  } catch (const base::Exception& error) {
    return error.what();
  }
  return "";
}

TEST(BindTest, NamesAMissingTensorAndTheNearestThatIsThere) {
  const std::string folder = WriteTinyModel("llama");
  Rename(folder, "model.embed_tokens.weight", "model.embed_tokenz.weight");
  const std::string text = Refusal(folder);
  EXPECT_NE(text.find("'model.embed_tokens.weight' is missing"), std::string::npos) << text;
  EXPECT_NE(text.find("'model.embed_tokenz.weight'"), std::string::npos) << text;
}

TEST(BindTest, RefusesATensorThatNoPartUses) {
  const std::string folder = WriteTinyModel("llama");
  SetConfig(folder, "num_hidden_layers", 2);
  EXPECT_NE(Refusal(folder).find("tensor 'model.layers.2."), std::string::npos) << Refusal(folder);
}

TEST(BindTest, RefusesATensorOfAnotherShape) {
  const std::string folder = WriteTinyModel("llama");
  SetConfig(folder, "intermediate_size", 81);
  EXPECT_NE(Refusal(folder).find("has shape [80, 64], the configuration asks for [81, 64]"), std::string::npos)
      << Refusal(folder);
}

TEST(BindTest, RefusesAConfigurationKeyThatNobodyKnows) {
  const std::string folder = WriteTinyModel("llama");
  SetConfig(folder, "residual_multiplier", 0.5);
  EXPECT_NE(Refusal(folder).find("residual_multiplier"), std::string::npos) << Refusal(folder);
}

TEST(BindTest, RefusesAModelTypeByName) {
  const std::string folder = WriteTinyModel("llama");
  SetConfig(folder, "model_type", "rwkv");
  EXPECT_NE(Refusal(folder).find("model_type 'rwkv' is not served; served: llama"), std::string::npos)
      << Refusal(folder);
}

TEST(BindTest, RefusesImpossibleSizesInOneLine) {
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, nlohmann::json>>{{"hidden_size", -64},
                                                                     {"num_hidden_layers", 1099511627776},
                                                                     {"num_attention_heads", 0},
                                                                     {"num_key_value_heads", 3},
                                                                     {"head_dim", 15},
                                                                     {"vocab_size", "96"}}) {
    const std::string folder = WriteTinyModel("llama");
    SetConfig(folder, key, value);
    const std::string text = Refusal(folder);
    EXPECT_NE(text.find(key), std::string::npos) << key << ": " << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

TEST(BindTest, AddsTheOneOfGemmasNorms) {
  const auto plain = LoadedModel::FromModelDir(WriteTinyModel("llama"));
  const auto gemma = LoadedModel::FromModelDir(WriteTinyModel("gemma2"));
  // Stored weights are 1 + noise for the one and noise for the other; bound, both stand near one.
  for (const auto* model : {plain.get(), gemma.get()})
    for (const float weight : model->bindings().Vector(Part::kFinalNorm)) EXPECT_NEAR(weight, 1, 0.26);
}

TEST(BindTest, ListsThePartsOfEveryLayerOnce) {
  const auto model = LoadedModel::FromModelDir(WriteTinyModel("qwen2"));
  std::set<std::pair<Part, int>> seen;
  for (const Role& role : RolesOf(model->spec())) EXPECT_TRUE(seen.insert({role.part, role.layer}).second);
  EXPECT_TRUE(seen.contains({Part::kVBias, 2}));
  EXPECT_FALSE(seen.contains({Part::kOutBias, 2}));
  EXPECT_EQ(TensorName(FindPartName(Part::kV, {}, DefaultHfNames()), 2), "model.layers.2.self_attn.v_proj.weight");
}

}  // namespace
}  // namespace vllm
