// The KV cache's size: the default rule, the flags that replace it, and contexts that do not fit.
#include "engine/run/kv_memory.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace vllm {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// One layer of 1 KiB a token: a block of 16 tokens is 16 KiB.
std::vector<LayerKvCache> OneLayer() {
  return {{.layer = 0, .spec = {.block_size = 16, .kv_heads = 4, .head_dim = 64, .dtype = vt::DType::kBF16}}};
}

EngineConfig Config() {
  EngineConfig config;
  config.block_size = 16;
  config.max_num_seqs = 4;
  return config;
}

KvMemoryPlan Plan(const EngineConfig& config, int64_t context, const base::MemoryInfo& memory, uint64_t weights = 0) {
  const auto layers = OneLayer();
  return PlanKvMemory(config, layers, context, 2048, weights, memory);
}

TEST(KvMemoryTest, TakesWhatAllSequencesNeedWhenMemoryAbounds) {
  const KvMemoryPlan plan = Plan(Config(), 1024, {.total = 64 * kGiB, .available = 32 * kGiB});
  EXPECT_EQ(plan.config.num_blocks, 4 * 64 + 1);  // four sequences of 64 blocks, and the null block
  EXPECT_EQ(plan.max_model_len, 1024);
  EXPECT_TRUE(plan.notice.empty());
}

TEST(KvMemoryTest, TakesFortyPercentOfAvailableMemoryOtherwise) {
  const KvMemoryPlan plan = Plan(Config(), 1 << 20, {.total = 64 * kGiB, .available = 5 * kGiB});
  EXPECT_EQ(plan.config.num_blocks, static_cast<int64_t>(2 * kGiB / (16 << 10)));
}

TEST(KvMemoryTest, SmallerTypesGiveMoreBlocksOfTheSameMemory) {
  EngineConfig config = Config();
  config.kv_cache_memory_bytes = 1 << 30;
  const auto blocks = [&](vt::DType dtype) {
    auto layers = OneLayer();
    layers[0].spec.dtype = dtype;
    return PlanKvMemory(config, layers, 1 << 22, 2048, 0, {.total = 64 * kGiB}).config.num_blocks;
  };
  EXPECT_EQ(blocks(vt::DType::kBF16), 65536);
  EXPECT_EQ(blocks(vt::DType::kF8E4M3), 2 * 65536);
  EXPECT_EQ(blocks(vt::DType::kI8), int64_t{1 << 30} / (16 * 4 * 2 * (64 + 4)));
  EXPECT_EQ(blocks(vt::DType::kF32), 65536 / 2);
}

TEST(KvMemoryTest, LeavesRoomForWeightsAndReserveUnderAControlGroup) {
  const base::MemoryInfo memory{.total = 64 * kGiB, .available = 32 * kGiB, .cgroup_limit = 3 * kGiB};
  const KvMemoryPlan plan = Plan(Config(), 1 << 20, memory, kGiB);
  EXPECT_EQ(plan.config.num_blocks, static_cast<int64_t>((3 * kGiB - kGiB - kGiB / 2) / (16 << 10)));
}

TEST(KvMemoryTest, UtilizationIsAFractionOfTotalMemory) {
  EngineConfig config = Config();
  config.gpu_memory_utilization = 0.5;
  const KvMemoryPlan plan = Plan(config, 1 << 22, {.total = 8 * kGiB, .available = kGiB}, kGiB);
  EXPECT_EQ(plan.config.num_blocks, static_cast<int64_t>(3 * kGiB / (16 << 10)));
}

TEST(KvMemoryTest, ShrinksADerivedContextAndSaysSo) {
  const KvMemoryPlan plan = Plan(Config(), 1 << 22, {.total = 8 * kGiB, .available = 5 * kGiB});
  EXPECT_EQ(plan.max_model_len, (plan.config.num_blocks - 1) * 16);
  EXPECT_NE(plan.notice.find("shrunk from 4194304"), std::string::npos) << plan.notice;
  EXPECT_EQ(plan.notice.find('\n'), std::string::npos);
}

TEST(KvMemoryTest, RefusesAnExplicitContextThatDoesNotFitWithTheArithmetic) {
  EngineConfig config = Config();
  config.max_model_len = 1 << 22;
  try {
    Plan(config, 1 << 22, {.total = 8 * kGiB, .available = 5 * kGiB});
    FAIL() << "4 GiB fitted into 2";
  } catch (const base::Exception& error) {
    EXPECT_EQ(error.code(), base::ErrorCode::kOutOfMemory);
    const std::string text = error.what();
    for (const char* part : {"4194304", "4.0 GiB", "2.0 GiB", "--max-model-len"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(KvMemoryTest, RefusesAPoolOverrideThatHoldsNotOneContext) {
  EngineConfig config = Config();
  config.num_gpu_blocks_override = 8;
  config.max_model_len = 2048;
  EXPECT_THROW(Plan(config, 4096, {.total = 8 * kGiB, .available = 5 * kGiB}), base::Exception);
  config.max_model_len = 7 * 16;
  EXPECT_EQ(Plan(config, 4096, {.total = 8 * kGiB, .available = 5 * kGiB}).config.num_blocks, 8);
}

}  // namespace
}  // namespace vllm
