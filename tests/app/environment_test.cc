// The environment: one table, unknown names of ours are told, foreign ones are left alone.
#include "app/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace vllm {
namespace {

TEST(Environment, KnownVariablesFillOptionsWithTheirNameAsOrigin) {
  base::Options options;
  EXPECT_TRUE(ApplyEnvironment({{"HF_HOME", "/cache"}}, &options).empty());
  EXPECT_EQ(options.String("hf_home", ""), "/cache");
  EXPECT_EQ(options.Origin("hf_home"), "HF_HOME");
}

TEST(Environment, EmptyVariablesCountAsUnset) {
  base::Options options;
  ApplyEnvironment({{"VLLM_API_KEY", ""}}, &options);
  EXPECT_FALSE(options.Has("api_key"));
}

TEST(Environment, OurVariablesWithoutEffectAreNoted) {
  base::Options options;
  const std::vector<std::string> notes = ApplyEnvironment({{"VLLM_USE_V1", "1"}, {"HF_HUB_OFFLINE", "1"}}, &options);
  EXPECT_EQ(notes, (std::vector<std::string>{"VLLM_USE_V1 has no effect: this is V1"}));
}

TEST(Environment, OfTheProcessOnlyOurNamesAreRead) {
  ::setenv("VLLM_MADE_UP", "1", 1);
  ::setenv("MADE_UP", "1", 1);
  bool ours = false, foreign = false;
  for (const auto& [name, value] : ReadEnvironment()) {
    ours = ours || name == "VLLM_MADE_UP";
    foreign = foreign || name == "MADE_UP";
  }
  EXPECT_TRUE(ours);
  EXPECT_FALSE(foreign);
}

}  // namespace
}  // namespace vllm
