// The pool of KV block ids: free list, reference counts and prefix cache map.
#include "engine/kv/block_pool.h"

#include <limits>

#include "base/check.h"

namespace vllm {

BlockPool::BlockPool(int64_t num_blocks, bool enable_caching) : enable_caching_(enable_caching) {
  CHECK(num_blocks >= 1 && num_blocks <= std::numeric_limits<int32_t>::max(), "num_blocks ", num_blocks);
  blocks_.resize(static_cast<size_t>(num_blocks));
  for (int32_t id = 1; id < num_blocks; ++id) LinkAfter(id - 1, id);
}

size_t BlockPool::Index(int32_t id) const {
  CHECK(id >= 0 && id < num_blocks(), "block ", id, " of ", num_blocks());
  return static_cast<size_t>(id);
}

void BlockPool::LinkAfter(int32_t previous, int32_t id) {
  Block& before = blocks_[Index(previous)];
  Block& block = blocks_[Index(id)];
  CHECK(!block.free && block.references == 0, "block ", id, " has ", block.references, " references");
  block.previous = previous;
  block.next = before.next;
  block.free = true;
  blocks_[Index(before.next)].previous = id;
  before.next = id;
  ++num_free_;
}

void BlockPool::Unlink(int32_t id) {
  Block& block = blocks_[Index(id)];
  CHECK(block.free && id != kNullBlock, "block ", id, " is not free");
  blocks_[Index(block.previous)].next = block.next;
  blocks_[Index(block.next)].previous = block.previous;
  block.previous = block.next = kNullBlock;
  block.free = false;
  --num_free_;
}

std::vector<int32_t> BlockPool::Allocate(int64_t count) {
  CHECK(count >= 0 && count <= num_free_, count, " blocks asked of ", num_free_);
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int32_t id = blocks_[kNullBlock].next;
    Unlink(id);
    Evict(id);
    blocks_[Index(id)].references = 1;
    ids.push_back(id);
  }
  return ids;
}

void BlockPool::Touch(std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    if (id == kNullBlock) continue;
    Block& block = blocks_[Index(id)];
    if (block.references == 0) Unlink(id);
    ++block.references;
  }
}

void BlockPool::Free(std::span<const int32_t> ids) {
  int32_t front = kNullBlock;
  for (const int32_t id : ids) {
    if (id == kNullBlock) continue;
    Block& block = blocks_[Index(id)];
    CHECK(block.references > 0, "block ", id, " is freed twice");
    if (--block.references > 0) continue;
    if (block.hashed && enable_caching_) {
      LinkAfter(blocks_[kNullBlock].previous, id);
    } else {
      // Prepended as one run: the first of `ids` is the first to be reused.
      LinkAfter(front, id);
      front = id;
    }
  }
}

void BlockPool::Insert(const BlockKey& key, int32_t id) {
  Block& block = blocks_[Index(id)];
  CHECK(enable_caching_ && id != kNullBlock && block.references > 0, "block ", id);
  CHECK(!block.hashed, "block ", id, " has a hash already");
  block.hashed = true;
  block.key = key;
  block.next_of_key = kNullBlock;
  const auto [entry, inserted] = cache_.try_emplace(key, id);
  if (inserted) return;
  int32_t last = entry->second;
  while (blocks_[Index(last)].next_of_key != kNullBlock) last = blocks_[Index(last)].next_of_key;
  blocks_[Index(last)].next_of_key = id;
}

std::optional<int32_t> BlockPool::Find(const BlockKey& key) const {
  const auto entry = cache_.find(key);
  if (entry == cache_.end()) return std::nullopt;
  return entry->second;
}

void BlockPool::Evict(int32_t id) {
  Block& block = blocks_[Index(id)];
  if (!block.hashed) return;
  const auto entry = cache_.find(block.key);
  CHECK(entry != cache_.end(), "block ", id, " is not in the map");
  if (entry->second == id) {
    if (block.next_of_key == kNullBlock) {
      cache_.erase(entry);
    } else {
      entry->second = block.next_of_key;
    }
  } else {
    int32_t before = entry->second;
    while (blocks_[Index(before)].next_of_key != id) {
      before = blocks_[Index(before)].next_of_key;
      CHECK(before != kNullBlock, "block ", id, " is not in its chain");
    }
    blocks_[Index(before)].next_of_key = block.next_of_key;
  }
  block.hashed = false;
  block.next_of_key = kNullBlock;
}

bool BlockPool::ResetPrefixCache() {
  if (num_used() != 0) return false;
  cache_.clear();
  for (Block& block : blocks_) {
    block.hashed = false;
    block.next_of_key = kNullBlock;
  }
  return true;
}

double BlockPool::usage() const {
  const int64_t usable = num_blocks() - 1;
  return usable == 0 ? 0.0 : 1.0 - static_cast<double>(num_free_) / static_cast<double>(usable);
}

std::vector<int32_t> BlockPool::FreeOrder() const {
  std::vector<int32_t> ids;
  for (int32_t id = blocks_[kNullBlock].next; id != kNullBlock; id = blocks_[Index(id)].next) ids.push_back(id);
  return ids;
}

void BlockPool::CheckIntegrity() const {
  const Block& null = blocks_[kNullBlock];
  CHECK(null.references == 0 && !null.free && !null.hashed, "the null block was used");
  int64_t listed = 0;
  for (int32_t id = null.next, before = kNullBlock; id != kNullBlock; before = id, id = blocks_[Index(id)].next) {
    const Block& block = blocks_[Index(id)];
    CHECK(block.free && block.previous == before, "block ", id, " is wrongly linked");
    CHECK(++listed <= num_free_, "the free list is longer than ", num_free_);
  }
  CHECK(listed == num_free_, listed, " listed, ", num_free_, " counted");
  int64_t hashed = 0, free = 0;
  for (int32_t id = 1; id < num_blocks(); ++id) {
    const Block& block = blocks_[Index(id)];
    CHECK(block.free == (block.references == 0), "block ", id, " has ", block.references, " references");
    hashed += block.hashed ? 1 : 0;
    free += block.free ? 1 : 0;
  }
  CHECK(free == num_free_, free, " blocks are free, ", num_free_, " are listed");
  int64_t mapped = 0;
  for (const auto& [key, head] : cache_) {
    for (int32_t id = head; id != kNullBlock; id = blocks_[Index(id)].next_of_key) {
      const Block& block = blocks_[Index(id)];
      CHECK(block.hashed && block.key == key, "block ", id, " has another key");
      CHECK(++mapped <= hashed, "a chain of the map is cyclic");
    }
  }
  CHECK(mapped == hashed, mapped, " mapped, ", hashed, " hashed");
}

}  // namespace vllm
