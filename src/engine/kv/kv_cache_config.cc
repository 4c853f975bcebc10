// Grouping of layers into KV groups, and the arithmetic of blocks and bytes.
#include "engine/kv/kv_cache_config.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/result.h"

namespace vllm {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Bucket {
  KvCacheSpec spec = {};
  std::vector<int> layers = {};
};

void CheckSpec(const LayerKvCache& layer) {
  const KvCacheSpec& spec = layer.spec;
  if (spec.block_size <= 0 || spec.kv_heads <= 0 || spec.head_dim <= 0) {
    base::Throw(base::ErrorCode::kInvalidArgument, "KV cache of layer ", layer.layer, ": block_size ", spec.block_size,
                ", kv_heads ", spec.kv_heads, " and head_dim ", spec.head_dim, " must be positive");
  }
  if ((spec.kind == KvCacheKind::kSlidingWindow) != (spec.window > 0)) {
    base::Throw(base::ErrorCode::kInvalidArgument, "KV cache of layer ", layer.layer, ": window ", spec.window,
                " does not suit its kind; a sliding window is positive, full attention has 0");
  }
}

std::vector<Bucket> BucketsOfEqualSpec(const std::vector<LayerKvCache>& layers) {
  int64_t max_page_bytes = 0;
  for (const LayerKvCache& layer : layers) {
    CheckSpec(layer);
    max_page_bytes = std::max(max_page_bytes, layer.spec.page_bytes());
  }
  std::vector<Bucket> buckets;
  for (const LayerKvCache& layer : layers) {
    KvCacheSpec spec = layer.spec;
    if (max_page_bytes % spec.page_bytes() != 0) {
      base::Throw(base::ErrorCode::kUnsupported, "KV cache of layer ", layer.layer, ": its page of ", spec.page_bytes(),
                  " bytes does not divide the largest page of ", max_page_bytes,
                  " bytes; layers of such different head counts or sizes cannot share a pool");
    }
    spec.block_size *= static_cast<int>(max_page_bytes / spec.page_bytes());
    auto bucket = std::find_if(buckets.begin(), buckets.end(), [&](const Bucket& b) { return b.spec == spec; });
    if (bucket == buckets.end()) bucket = buckets.insert(buckets.end(), Bucket{.spec = spec});
    bucket->layers.push_back(layer.layer);
  }
  return buckets;
}

}  // namespace

std::vector<KvCacheGroup> MakeKvCacheGroups(const std::vector<LayerKvCache>& layers) {
  if (layers.empty()) return {};
  const std::vector<Bucket> buckets = BucketsOfEqualSpec(layers);
  size_t smallest = std::numeric_limits<size_t>::max(), largest = 0;
  for (const Bucket& bucket : buckets) {
    smallest = std::min(smallest, bucket.layers.size());
    largest = std::max(largest, bucket.layers.size());
  }
  // A few padding slots cost less than twice as many groups.
  const size_t group_size = 2 * largest < 3 * smallest ? largest : smallest;
  std::vector<KvCacheGroup> groups;
  for (const Bucket& bucket : buckets) {
    const size_t num_groups = (bucket.layers.size() + group_size - 1) / group_size;
    for (size_t g = 0; g < num_groups; ++g) {
      KvCacheGroup group{.spec = bucket.spec};
      for (size_t i = g; i < bucket.layers.size(); i += num_groups) group.layers.push_back(bucket.layers[i]);
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

int64_t KvBytesPerBlock(std::span<const KvCacheGroup> groups) {
  int64_t bytes = 0;
  for (const KvCacheGroup& group : groups) {
    bytes = std::max(bytes, static_cast<int64_t>(group.layers.size()) * group.spec.page_bytes());
  }
  return bytes;
}

KvCacheConfig MakeKvCacheConfig(std::vector<KvCacheGroup> groups, int64_t memory_bytes,
                                std::optional<int64_t> num_blocks_override) {
  KvCacheConfig config;
  const int64_t block_bytes = KvBytesPerBlock(groups);
  int64_t num_blocks = block_bytes == 0 ? 1 : memory_bytes / block_bytes;
  if (num_blocks_override.has_value()) num_blocks = *num_blocks_override;
  // Block ids are 32 bits.
  config.num_blocks = std::clamp<int64_t>(num_blocks, 0, std::numeric_limits<int32_t>::max());
  for (const KvCacheGroup& group : groups) {
    config.layer_slots = std::max(config.layer_slots, static_cast<int>(group.layers.size()));
  }
  config.groups = std::move(groups);
  return config;
}

int64_t KvBlocksNeeded(const KvCacheSpec& spec, int64_t num_tokens, const KvLimits& limits) {
  const int64_t blocks = CeilDiv(num_tokens, spec.block_size);
  if (spec.kind == KvCacheKind::kFullAttention) return blocks;
  const int64_t held = std::min(spec.window - 1 + limits.max_in_flight_tokens, limits.max_model_len);
  // One more, because the window may start inside a block.
  return std::min(blocks, CeilDiv(held, spec.block_size) + 1);
}

int64_t KvBlocksNeeded(std::span<const KvCacheGroup> groups, int64_t num_tokens, const KvLimits& limits) {
  int64_t blocks = 0;
  for (const KvCacheGroup& group : groups) blocks += KvBlocksNeeded(group.spec, num_tokens, limits);
  return blocks;
}

int64_t LongestSequence(std::span<const KvCacheGroup> groups, int64_t num_blocks, const KvLimits& limits) {
  // The need never falls with the length, so a bisection finds the last length that fits.
  int64_t fits = 0, too_long = limits.max_model_len + 1;
  while (too_long - fits > 1) {
    const int64_t middle = fits + (too_long - fits) / 2;
    const KvLimits at_length{.max_model_len = middle, .max_in_flight_tokens = limits.max_in_flight_tokens};
    (KvBlocksNeeded(groups, middle, at_length) <= num_blocks - 1 ? fits : too_long) = middle;
  }
  return fits;
}

int HashBlockSize(std::span<const KvCacheGroup> groups) {
  int size = 0;
  for (const KvCacheGroup& group : groups) size = std::gcd(size, group.spec.block_size);
  return size == 0 ? 1 : size;
}

int HitAlignmentTokens(std::span<const KvCacheGroup> groups) {
  int size = 1;
  for (const KvCacheGroup& group : groups) size = std::lcm(size, group.spec.block_size);
  return size;
}

}  // namespace vllm
