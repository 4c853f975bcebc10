// The blocks of one KV group: what a sequence needs, which prefix blocks it can reuse, which it may give back.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/kv/block_pool.h"
#include "engine/kv/kv_cache_config.h"

namespace vllm {

// A sequence's blocks in one group. Entry i of the table holds tokens [i * block_size, (i + 1) * block_size).
struct GroupBlocks {
  std::vector<int32_t> ids = {};  // leading entries may be the null block (out of the window)
  int64_t num_null = 0;           // how many of them
  int64_t num_cached = 0;         // leading blocks that have been offered to the prefix cache
};

// One group of full attention or of a sliding window. Holds no sequence state. Engine thread only.
class GroupManager {
 public:
  struct Options {
    int group = 0;                 // index, part of the prefix cache's key
    int hash_block_size = 0;       // of the hashes handed in; divides the group's block size
    int hit_alignment_tokens = 0;  // prefix hits end on multiples of it
    KvLimits limits = {};
  };

  GroupManager(const KvCacheSpec& spec, const Options& options, BlockPool* pool);

  const KvCacheSpec& spec() const { return spec_; }
  int block_size() const { return spec_.block_size; }

  struct Need {
    int64_t num_tokens = 0;           // that must have a slot, from the sequence's start
    int64_t num_computed_tokens = 0;  // of which these are computed, or hits
    bool cap = false;                 // cap at what the group ever holds at once (the admission gate)
  };
  // Blocks to take from the pool: new ones, and hits that are free now.
  int64_t BlocksNeeded(const GroupBlocks& blocks, std::span<const int32_t> hits, const Need& need) const;

  // Longest run of cached blocks that a sequence may start from, within `max_tokens`; entries before a sliding window
  // are null.
  std::vector<int32_t> FindHits(std::span<const BlockHash> hashes, int64_t max_tokens) const;

  // Starts an empty table from hits.
  void AddHits(GroupBlocks& blocks, std::span<const int32_t> hits, int64_t num_hit_tokens);
  // Grows the table to `num_tokens` slots; returns the new ids.
  std::vector<int32_t> Grow(GroupBlocks& blocks, int64_t num_tokens);
  // Frees blocks that no token after the first `num_settled_tokens` can attend to, and leaves null blocks in their
  // place.
  void FreeSkipped(GroupBlocks& blocks, int64_t num_settled_tokens);
  // Frees all, the tail first.
  void Free(GroupBlocks& blocks);

  // Offers the full blocks of the first `num_tokens` tokens to the prefix cache. A sliding-window group keeps only
  // blocks that a later request can reach: the window before each of `boundaries` (token positions).
  void Cache(GroupBlocks& blocks, std::span<const BlockHash> hashes, int64_t num_tokens,
             std::span<const int64_t> boundaries);

 private:
  bool sliding() const { return spec_.kind == KvCacheKind::kSlidingWindow; }
  int64_t NumSkippedTokens(int64_t num_computed_tokens) const;
  int64_t BlocksForHit() const;  // contiguous blocks that a hit in a window needs
  BlockKey KeyOf(std::span<const BlockHash> hashes, int64_t block) const;
  std::vector<int32_t> FindFullHits(std::span<const BlockHash> hashes, int64_t max_blocks) const;
  std::vector<int32_t> FindWindowHits(std::span<const BlockHash> hashes, int64_t max_blocks) const;
  bool Reachable(int64_t block, std::span<const int64_t> boundaries) const;

  KvCacheSpec spec_;
  Options options_;
  BlockPool* pool_;
};

}  // namespace vllm
