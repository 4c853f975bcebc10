// Rotary tables equal transformers' for every kind of scaling.
#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace vllm {
namespace {

constexpr int kMaxPosition = 4096;

spec::Rope RopeOf(const spec::RopeScaling& scaling) { return {.dim = 64, .base = 50000, .scaling = scaling}; }

void ExpectGolden(const char* name, const spec::RopeScaling& scaling) {
  const auto golden = nlohmann::json::parse(std::ifstream(VLLM_SOURCE_DIR "/tests/data/model/rope.json")).at(name);
  const vt::RopeTable table = MakeRopeTable(RopeOf(scaling), kMaxPosition, {});
  const auto frequencies = golden.at("frequencies").get<std::vector<double>>();
  ASSERT_EQ(table.inverse_frequency.size(), frequencies.size());
  for (size_t i = 0; i < frequencies.size(); ++i)
    EXPECT_NEAR(table.inverse_frequency[i] / frequencies[i], 1, 1e-5) << name << " " << i;  // theirs is in float32
  EXPECT_NEAR(table.attention_factor, golden.at("attention_factor").get<double>(), 1e-6) << name;
}

using Kind = spec::RopeScaling::Kind;

TEST(RopeTest, WithoutScalingFrequenciesAreAGeometricSeries) {
  const vt::RopeTable table = MakeRopeTable(RopeOf({}), kMaxPosition, {});
  ASSERT_EQ(table.inverse_frequency.size(), 32u);
  EXPECT_EQ(table.attention_factor, 1);
  for (int i = 0; i < 32; ++i) EXPECT_NEAR(table.inverse_frequency[i] * std::pow(50000.0, i / 32.0), 1, 1e-6);
}

TEST(RopeTest, LinearEqualsTransformers) { ExpectGolden("linear", {.kind = Kind::kLinear, .factor = 4}); }

TEST(RopeTest, Llama3EqualsTransformers) {
  ExpectGolden("llama3", {.kind = Kind::kLlama3, .factor = 8, .original_max_position = 512});
}

TEST(RopeTest, YarnEqualsTransformers) {
  ExpectGolden("yarn", {.kind = Kind::kYarn, .factor = 4, .original_max_position = 1024});
}

TEST(RopeTest, YarnWithAnExactRangeEqualsTransformers) {
  ExpectGolden("yarn_exact_range", {.kind = Kind::kYarn,
                                    .factor = 40,
                                    .original_max_position = 4096,
                                    .beta_fast = 16,
                                    .beta_slow = 2,
                                    .truncate = false});
}

TEST(RopeTest, YarnTakesTheAttentionFactorOfTheConfiguration) {
  ExpectGolden("yarn_attention_factor",
               {.kind = Kind::kYarn, .factor = 2, .original_max_position = 2048, .attention_factor = 1.25});
}

TEST(RopeTest, YarnWithMscalesEqualsTransformers) {
  ExpectGolden(
      "yarn_mscale",
      {.kind = Kind::kYarn, .factor = 40, .original_max_position = 4096, .mscale = 0.707, .mscale_all_dim = 1});
}

TEST(RopeTest, FactorsOfTheFileDivideTheFrequencies) {
  std::vector<float> factors(32, 1);
  factors[5] = 4;
  const vt::RopeTable plain = MakeRopeTable(RopeOf({}), kMaxPosition, {});
  const vt::RopeTable divided = MakeRopeTable(RopeOf({}), kMaxPosition, factors);
  EXPECT_FLOAT_EQ(divided.inverse_frequency[5], plain.inverse_frequency[5] / 4);
  EXPECT_EQ(divided.inverse_frequency[6], plain.inverse_frequency[6]);
}

TEST(RopeTest, AnOddDimensionIsOurBug) {
  EXPECT_THROW(MakeRopeTable({.dim = 7}, kMaxPosition, {}), base::InternalError);
}

}  // namespace
}  // namespace vllm
