// Options become an engine configuration, or one line that says which is wrong.
#include "engine/config.h"

#include <gtest/gtest.h>

#include "base/options.h"

namespace vllm {
namespace {

base::Options Given(std::initializer_list<std::pair<const char*, const char*>> pairs) {
  base::Options options;
  options.Set("model", "m.gguf");
  for (const auto& [name, value] : pairs) options.Set(name, value);
  return options;
}

std::string ErrorOf(const base::Options& options) {
  try {
    EngineConfigFromOptions(options);
  } catch (const base::Exception& exception) {
    return exception.what();
  }
  return "no error";
}

TEST(EngineConfig, DefaultsAreVllmsForACpu) {
  const EngineConfig config = EngineConfigFromOptions(Given({}));
  EXPECT_EQ(config.model, "m.gguf");
  EXPECT_EQ(config.block_size, 32);
  EXPECT_EQ(config.max_num_seqs, 128);
  EXPECT_EQ(config.max_model_len, std::nullopt);
  EXPECT_TRUE(config.enable_prefix_caching);
  EXPECT_EQ(config.device, vt::DeviceType::kCpu);
}

TEST(EngineConfig, ReadsEveryKindOfValue) {
  const EngineConfig config = EngineConfigFromOptions(Given({{"max-model-len", "4k"},
                                                             {"seed", "-7"},
                                                             {"numerics", "exact"},
                                                             {"device", "ref"},
                                                             {"gpu_memory_utilization", "0.5"},
                                                             {"enable_prefix_caching", "false"},
                                                             {"hf_home", "/h"}}));
  EXPECT_EQ(config.max_model_len, 4000);
  EXPECT_EQ(config.seed, -7);
  EXPECT_EQ(config.numerics, vt::Numerics::kExact);
  EXPECT_EQ(config.device, vt::DeviceType::kRef);
  EXPECT_EQ(config.gpu_memory_utilization, 0.5);
  EXPECT_FALSE(config.enable_prefix_caching);
  EXPECT_EQ(config.hub.hf_home, "/h");
}

TEST(EngineConfig, AutomaticLengthIsNoLength) {
  EXPECT_EQ(EngineConfigFromOptions(Given({{"max_model_len", "auto"}})).max_model_len, std::nullopt);
  EXPECT_EQ(EngineConfigFromOptions(Given({{"max_model_len", "-1"}})).max_model_len, std::nullopt);
}

TEST(EngineConfig, VllmsCacheVariableCountsInGib) {
  EXPECT_EQ(EngineConfigFromOptions(Given({{"cpu_kvcache_space", "2"}})).kv_cache_memory_bytes, int64_t{2} << 30);
  EXPECT_EQ(EngineConfigFromOptions(Given({{"cpu_kvcache_space", "2"}, {"kv_cache_memory_bytes", "1M"}}))
                .kv_cache_memory_bytes,
            1 << 20);
}

TEST(EngineConfig, VllmsBatchInvariantVariableChoosesNumericsUnlessTheFlagDoes) {
  EXPECT_EQ(EngineConfigFromOptions(Given({{"batch_invariant", "1"}})).numerics, vt::Numerics::kInvariant);
  EXPECT_EQ(EngineConfigFromOptions(Given({{"batch_invariant", "0"}})).numerics, vt::Numerics::kDefault);
  EXPECT_EQ(EngineConfigFromOptions(Given({{"batch_invariant", "1"}, {"numerics", "exact"}})).numerics,
            vt::Numerics::kExact);
}

TEST(EngineConfig, TheKvCachesTypeIsOneOfItsNames) {
  EXPECT_EQ(EngineConfigFromOptions(Given({})).kv_cache_dtype, std::nullopt);
  EXPECT_EQ(EngineConfigFromOptions(Given({{"kv_cache_dtype", "auto"}})).kv_cache_dtype, std::nullopt);
  EXPECT_EQ(EngineConfigFromOptions(Given({{"kv-cache-dtype", "fp8_e5m2"}})).kv_cache_dtype, vt::DType::kF8E5M2);
  EXPECT_EQ(ErrorOf(Given({{"kv_cache_dtype", "nvfp4"}})),
            "kv_cache_dtype: 'nvfp4' is none of auto, bfloat16, float16, float32, fp8, fp8_e4m3, fp8_e5m2, "
            "int8_per_token_head");
}

TEST(EngineConfig, NoModelIsToldWithTheRemedy) {
  EXPECT_EQ(ErrorOf(base::Options()),
            "model: none given; name a GGUF file, a model folder, or a hub name that is in the local cache");
}

TEST(EngineConfig, ValuesOutOfRangeAreRefused) {
  EXPECT_EQ(ErrorOf(Given({{"max_num_seqs", "0"}})), "max_num_seqs: '0' must be at least 1");
  EXPECT_EQ(ErrorOf(Given({{"gpu_memory_utilization", "1.5"}})),
            "gpu_memory_utilization: '1.5' must be above 0, at most 1");
  EXPECT_EQ(ErrorOf(Given({{"max_model_len", "99999999999"}})), "max_model_len: '99999999999' is too large");
  EXPECT_EQ(ErrorOf(Given({{"device", "cuda"}})), "device: 'cuda' is none of cpu, ref, opaque");
  EXPECT_EQ(ErrorOf(Given({{"watermark", "1"}})), "watermark: '1' must be at least 0, below 1");
}

TEST(EngineConfig, EveryNameOfTheListIsRead) {
  for (const std::string_view name : EngineOptionNames()) {
    if (name == "served_model_name") continue;  // a list takes anything
    base::Options options;
    options.Set("model", "m.gguf");
    options.SetList(name, {"a", "b"});
    EXPECT_NE(ErrorOf(options), "no error") << name;
  }
}

}  // namespace
}  // namespace vllm
