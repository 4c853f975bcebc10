// The pool of KV block ids: a free list in eviction order, reference counts, and the prefix cache's map from hash to
// block.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/kv/block_hash.h"

namespace vllm {

// Stands in block tables for blocks outside a sliding window. Never allocated, freed or hashed.
inline constexpr int32_t kNullBlock = 0;

// Order of reuse, as in vLLM's V1: fresh blocks by id; a freed block without a hash goes to the front (it can serve no
// hit), one with a hash to the back, where it stays findable until it is reused (lazy eviction). Engine thread only.
class BlockPool {
 public:
  // `num_blocks` counts the null block; at least 1.
  BlockPool(int64_t num_blocks, bool enable_caching);

  // Takes `count` blocks from the front, dropping their hashes; each has one reference. CHECKs count <= num_free().
  std::vector<int32_t> Allocate(int64_t count);
  // Adds a reference to each; a free one leaves the free list. Null blocks are skipped.
  void Touch(std::span<const int32_t> ids);
  // Drops a reference of each. `ids` come in the order in which they are to be reused: a sequence frees its tail first.
  void Free(std::span<const int32_t> ids);

  // Makes a referenced block findable. A key may name several blocks; Find returns the oldest.
  void Insert(const BlockKey& key, int32_t id);
  std::optional<int32_t> Find(const BlockKey& key) const;
  // Drops the block's hash, if it has one; the block keeps its references.
  void Evict(int32_t id);
  // Forgets all hashes; false (and nothing done) while any block is in use.
  bool ResetPrefixCache();

  int64_t num_blocks() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t num_free() const { return num_free_; }
  int64_t num_used() const { return num_blocks() - 1 - num_free_; }
  // 0 .. 1, of the blocks without the null block.
  double usage() const;
  int64_t num_cached_keys() const { return static_cast<int64_t>(cache_.size()); }
  int ref_count(int32_t id) const { return blocks_[Index(id)].references; }
  bool hashed(int32_t id) const { return blocks_[Index(id)].hashed; }
  const BlockKey& key(int32_t id) const { return blocks_[Index(id)].key; }  // of a hashed block
  // Ids in the order in which they will be handed out. For tests: walks the list.
  std::vector<int32_t> FreeOrder() const;

  // CHECKs every invariant: list links, counts, hash map. Walks everything.
  void CheckIntegrity() const;

 private:
  struct Block {
    int32_t references = 0;
    int32_t previous = kNullBlock, next = kNullBlock;  // in the free list; the null block is its sentinel
    int32_t next_of_key = kNullBlock;                  // the next younger block with the same key
    bool free = false;
    bool hashed = false;
    BlockKey key = {};
  };

  size_t Index(int32_t id) const;
  void LinkAfter(int32_t previous, int32_t id);
  void Unlink(int32_t id);

  bool enable_caching_;
  std::vector<Block> blocks_;
  int64_t num_free_ = 0;
  std::unordered_map<BlockKey, int32_t, BlockKeyHasher> cache_;  // the oldest block of each key
};

}  // namespace vllm
