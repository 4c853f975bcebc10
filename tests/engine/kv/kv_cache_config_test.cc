// KV groups: V1's hybrid layout, and the arithmetic of blocks.
#include "engine/kv/kv_cache_config.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace vllm {
namespace {

KvCacheSpec Spec(int window = 0, int kv_heads = 1) {
  return {.kind = window > 0 ? KvCacheKind::kSlidingWindow : KvCacheKind::kFullAttention,
          .block_size = 16,
          .kv_heads = kv_heads,
          .head_dim = 64,
          .window = window};
}

// 'f' is full attention, 's' a sliding window of 512.
std::vector<LayerKvCache> Layers(std::string_view pattern) {
  std::vector<LayerKvCache> layers;
  for (const char kind : pattern) {
    layers.push_back({.layer = static_cast<int>(layers.size()), .spec = Spec(kind == 's' ? 512 : 0)});
  }
  return layers;
}

std::vector<std::vector<int>> LayersOf(const std::vector<KvCacheGroup>& groups) {
  std::vector<std::vector<int>> layers;
  for (const KvCacheGroup& group : groups) layers.push_back(group.layers);
  return layers;
}

using Lists = std::vector<std::vector<int>>;

TEST(KvCacheGroups, OfOneKindAreOneGroup) {
  EXPECT_EQ(LayersOf(MakeKvCacheGroups(Layers("ffff"))), (Lists{{0, 1, 2, 3}}));
  EXPECT_EQ(LayersOf(MakeKvCacheGroups(Layers("sss"))), (Lists{{0, 1, 2}}));
}

TEST(KvCacheGroups, OfNoLayersAreNone) {
  EXPECT_TRUE(MakeKvCacheGroups({}).empty());
  EXPECT_EQ(MakeKvCacheConfig({}, 1 << 20).num_blocks, 1);
}

// Gemma 3: five local layers, then a global one. Two global layers make groups of two.
TEST(KvCacheGroups, SplitTheCommonerKindStridedIntoGroupsOfTheRarer) {
  const std::vector<KvCacheGroup> groups = MakeKvCacheGroups(Layers("sssssfsssssf"));
  EXPECT_EQ(LayersOf(groups), (Lists{{0, 6}, {1, 7}, {2, 8}, {3, 9}, {4, 10}, {5, 11}}));
  EXPECT_EQ(groups[4].spec.kind, KvCacheKind::kSlidingWindow);
  EXPECT_EQ(groups[5].spec.kind, KvCacheKind::kFullAttention);
}

TEST(KvCacheGroups, PadAShortGroupRatherThanDoubleTheirNumber) {
  const std::vector<KvCacheGroup> groups = MakeKvCacheGroups(Layers("sssssfsssssfss"));
  EXPECT_EQ(LayersOf(groups), (Lists{{0, 7}, {1, 8}, {2, 9}, {3, 10}, {4, 12}, {6, 13}, {5, 11}}));
  const std::vector<KvCacheGroup> odd = MakeKvCacheGroups(Layers("sffsfsf"));  // 3 local, 4 global: less than 1.5 times
  EXPECT_EQ(LayersOf(odd), (Lists{{0, 3, 5}, {1, 2, 4, 6}}));
  EXPECT_EQ(MakeKvCacheConfig(odd, 1 << 20).layer_slots, 4);
}

TEST(KvCacheGroups, ScaleTheBlockOfASmallerPage) {
  std::vector<LayerKvCache> layers = Layers("ff");
  layers[1].spec = Spec(512, 2);
  const std::vector<KvCacheGroup> groups = MakeKvCacheGroups(layers);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].spec.block_size, 32);
  EXPECT_EQ(groups[1].spec.block_size, 16);
  EXPECT_EQ(groups[0].spec.page_bytes(), groups[1].spec.page_bytes());
  EXPECT_EQ(HashBlockSize(groups), 16);
  EXPECT_EQ(HitAlignmentTokens(groups), 32);
}

TEST(KvCacheGroups, RefusePagesThatDoNotDivide) {
  std::vector<LayerKvCache> layers = Layers("ff");
  layers[0].spec = Spec(0, 2);
  layers[1].spec = Spec(512, 3);
  EXPECT_THROW(MakeKvCacheGroups(layers), base::Exception);
}

TEST(KvCacheGroups, RefuseASpecWithoutSizes) {
  std::vector<LayerKvCache> layers = Layers("f");
  layers[0].spec.block_size = 0;
  EXPECT_THROW(MakeKvCacheGroups(layers), base::Exception);
  layers = Layers("f");
  layers[0].spec.window = 16;
  EXPECT_THROW(MakeKvCacheGroups(layers), base::Exception);
}

TEST(KvCacheConfig, CountsBlocksOfWholeGroups) {
  const std::vector<KvCacheGroup> groups = MakeKvCacheGroups(Layers("sssssfsssssf"));
  const int64_t page = 2 * 16 * 64 * 2;
  EXPECT_EQ(KvBytesPerBlock(groups), 2 * page);
  EXPECT_EQ(MakeKvCacheConfig(groups, 10 * page + 1).num_blocks, 5);
  EXPECT_EQ(MakeKvCacheConfig(groups, 10 * page, 77).num_blocks, 77);
  EXPECT_EQ(MakeKvCacheConfig(groups, 10 * page).layer_slots, 2);
}

TEST(KvBlocksNeeded, CapsASlidingWindowAtWhatItHolds) {
  const KvLimits limits{.max_model_len = 4096, .max_in_flight_tokens = 128};
  EXPECT_EQ(KvBlocksNeeded(Spec(), 33, limits), 3);
  EXPECT_EQ(KvBlocksNeeded(Spec(), 4096, limits), 256);
  EXPECT_EQ(KvBlocksNeeded(Spec(64), 33, limits), 3);
  // 63 + 128 tokens are 12 blocks, and one more because the window may start inside a block.
  EXPECT_EQ(KvBlocksNeeded(Spec(64), 4096, limits), 13);
  const std::vector<KvCacheGroup> groups = MakeKvCacheGroups(Layers("sf"));
  EXPECT_EQ(KvBlocksNeeded(groups, 4096, limits), 256 + (511 + 128 + 15) / 16 + 1);
}

TEST(LongestSequence, IsTheLastThatFits) {
  const std::vector<KvCacheGroup> full = MakeKvCacheGroups(Layers("f"));
  EXPECT_EQ(LongestSequence(full, 8, {.max_model_len = 4096, .max_in_flight_tokens = 128}), 7 * 16);
  EXPECT_EQ(LongestSequence(full, 1000, {.max_model_len = 4096, .max_in_flight_tokens = 128}), 4096);
  EXPECT_EQ(LongestSequence(full, 1, {.max_model_len = 4096, .max_in_flight_tokens = 128}), 0);
  const std::vector<KvCacheGroup> window = MakeKvCacheGroups(Layers("s"));
  EXPECT_EQ(LongestSequence(window, 42, {.max_model_len = 1 << 20, .max_in_flight_tokens = 128}), 1 << 20);
}

}  // namespace
}  // namespace vllm
