// From what each layer keeps to KV groups, bytes and block counts: vLLM's V1 hybrid layout, in which groups alias one
// pool.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/run/model_runner.h"
#include "model/kv_cache_spec.h"

namespace vllm {

// Groups layers of equal spec. One spec: one group. Several: pages are made equal by scaling the block size of smaller
// ones, and each kind is split into groups of as many layers as the rarest kind has (strided: layer i goes to group i %
// groups), or as the commonest has if that is less than 1.5 times as many. Group order is that of first appearance.
// Throws base::Exception (kUnsupported) if a page does not divide the largest, (kInvalidArgument) for a bad spec.
std::vector<KvCacheGroup> MakeKvCacheGroups(const std::vector<LayerKvCache>& layers);

// Bytes that one block id stands for: a page in each layer slot.
int64_t KvBytesPerBlock(std::span<const KvCacheGroup> groups);

// The pool for `memory_bytes`, or of `num_blocks_override` blocks (null block included). No layers: one block.
KvCacheConfig MakeKvCacheConfig(std::vector<KvCacheGroup> groups, int64_t memory_bytes,
                                std::optional<int64_t> num_blocks_override = std::nullopt);

// What bounds a sequence's hold on a sliding-window group.
struct KvLimits {
  int64_t max_model_len = 0;
  int64_t max_in_flight_tokens = 0;  // steps in flight x tokens a step: their blocks are not yet freed
};

// The most blocks that a sequence holds at once in one group, whatever its length; for a full-attention group there is
// no such cap and `num_tokens` decides.
int64_t KvBlocksNeeded(const KvCacheSpec& spec, int64_t num_tokens, const KvLimits& limits);
// The same, summed over groups. Without the null block.
int64_t KvBlocksNeeded(std::span<const KvCacheGroup> groups, int64_t num_tokens, const KvLimits& limits);

// The longest sequence, up to limits.max_model_len, that `num_blocks` (null block included) can hold; 0 if none.
int64_t LongestSequence(std::span<const KvCacheGroup> groups, int64_t num_blocks, const KvLimits& limits);

// Blocks are hashed at the finest granularity of all groups; prefix hits end on multiples of the coarsest.
int HashBlockSize(std::span<const KvCacheGroup> groups);       // greatest common divisor of block sizes
int HitAlignmentTokens(std::span<const KvCacheGroup> groups);  // least common multiple

}  // namespace vllm
