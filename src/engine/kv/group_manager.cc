// The blocks of one KV group, with vLLM V1's rules for full attention and sliding windows.
#include "engine/kv/group_manager.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vllm {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t Size(const auto& container) { return static_cast<int64_t>(container.size()); }

}  // namespace

GroupManager::GroupManager(const KvCacheSpec& spec, const Options& options, BlockPool* pool)
    : spec_(spec), options_(options), pool_(pool) {
  CHECK(spec.block_size > 0 && spec.block_size % options.hash_block_size == 0, "block_size ", spec.block_size,
        " is no multiple of ", options.hash_block_size);
  CHECK(options.hit_alignment_tokens % spec.block_size == 0, "hits align to ", options.hit_alignment_tokens);
}

int64_t GroupManager::NumSkippedTokens(int64_t num_computed_tokens) const {
  // The next token sees itself and window - 1 before it.
  return sliding() ? std::max<int64_t>(0, num_computed_tokens - spec_.window + 1) : 0;
}

int64_t GroupManager::BlocksForHit() const { return CeilDiv(spec_.window - 1, block_size()); }

int64_t GroupManager::BlocksNeeded(const GroupBlocks& blocks, std::span<const int32_t> hits, const Need& need) const {
  int64_t required = CeilDiv(need.num_tokens, block_size());
  if (need.cap) required = std::min(required, KvBlocksNeeded(spec_, need.num_tokens, options_.limits));
  const int64_t have = Size(blocks.ids);
  const int64_t skipped = NumSkippedTokens(need.num_computed_tokens) / block_size();
  const int64_t fresh = std::max<int64_t>(0, required - std::max(skipped, have + Size(hits)));
  int64_t free_hits = 0;
  for (int64_t i = std::max<int64_t>(0, skipped - have); i < Size(hits); ++i) {
    const int32_t id = hits[static_cast<size_t>(i)];
    free_hits += id != kNullBlock && pool_->ref_count(id) == 0 ? 1 : 0;
  }
  return fresh + free_hits;
}

BlockKey GroupManager::KeyOf(std::span<const BlockHash> hashes, int64_t block) const {
  // A coarser block is named by its last fine hash: the chain makes it unique.
  const int64_t scale = block_size() / options_.hash_block_size;
  return {.hash = hashes[static_cast<size_t>((block + 1) * scale - 1)], .group = options_.group};
}

std::vector<int32_t> GroupManager::FindHits(std::span<const BlockHash> hashes, int64_t max_tokens) const {
  const int64_t hashed_tokens = Size(hashes) * options_.hash_block_size;
  const int64_t max_blocks = std::min(max_tokens, hashed_tokens) / block_size();
  return sliding() ? FindWindowHits(hashes, max_blocks) : FindFullHits(hashes, max_blocks);
}

std::vector<int32_t> GroupManager::FindFullHits(std::span<const BlockHash> hashes, int64_t max_blocks) const {
  std::vector<int32_t> hits;
  for (int64_t i = 0; i < max_blocks; ++i) {
    const std::optional<int32_t> id = pool_->Find(KeyOf(hashes, i));
    if (!id.has_value()) break;
    hits.push_back(*id);
  }
  while (Size(hits) * block_size() % options_.hit_alignment_tokens != 0) hits.pop_back();
  return hits;
}

// Scans from the right for as many neighbours as a window spans. A shorter run counts only at the very start of the
// sequence, where nothing precedes it.
std::vector<int32_t> GroupManager::FindWindowHits(std::span<const BlockHash> hashes, int64_t max_blocks) const {
  std::vector<int32_t> hits(static_cast<size_t>(max_blocks), kNullBlock);
  int64_t run = 0;
  for (int64_t i = max_blocks - 1; i >= 0; --i) {
    const std::optional<int32_t> id = pool_->Find(KeyOf(hashes, i));
    if (!id.has_value()) {
      run = 0;
      continue;
    }
    if (run == 0 && (i + 1) * block_size() % options_.hit_alignment_tokens != 0) continue;
    hits[static_cast<size_t>(i)] = *id;
    if (++run >= BlocksForHit()) {
      hits.resize(static_cast<size_t>(i + run));
      return hits;
    }
  }
  hits.resize(static_cast<size_t>(run));
  while (Size(hits) * block_size() % options_.hit_alignment_tokens != 0) hits.pop_back();
  return hits;
}

void GroupManager::AddHits(GroupBlocks& blocks, std::span<const int32_t> hits, int64_t num_hit_tokens) {
  CHECK(blocks.ids.empty(), "hits for a sequence that has ", blocks.ids.size(), " blocks");
  const int64_t skipped = NumSkippedTokens(num_hit_tokens) / block_size();
  const std::span<const int32_t> kept = hits.subspan(static_cast<size_t>(std::min(skipped, Size(hits))));
  pool_->Touch(kept);
  blocks.ids.assign(static_cast<size_t>(skipped), kNullBlock);
  blocks.ids.insert(blocks.ids.end(), kept.begin(), kept.end());
  blocks.num_null = skipped;
  blocks.num_cached = Size(blocks.ids);
}

std::vector<int32_t> GroupManager::Grow(GroupBlocks& blocks, int64_t num_tokens) {
  const int64_t missing = CeilDiv(num_tokens, block_size()) - Size(blocks.ids);
  if (missing <= 0) return {};
  std::vector<int32_t> ids = pool_->Allocate(missing);
  blocks.ids.insert(blocks.ids.end(), ids.begin(), ids.end());
  return ids;
}

void GroupManager::FreeSkipped(GroupBlocks& blocks, int64_t num_settled_tokens) {
  const int64_t end = std::min(NumSkippedTokens(num_settled_tokens) / block_size(), Size(blocks.ids));
  if (end <= blocks.num_null) return;
  std::vector<int32_t> freed;
  for (int64_t i = end - 1; i >= blocks.num_null; --i) {
    freed.push_back(std::exchange(blocks.ids[static_cast<size_t>(i)], kNullBlock));
  }
  blocks.num_null = end;
  pool_->Free(freed);
}

void GroupManager::Free(GroupBlocks& blocks) {
  std::reverse(blocks.ids.begin(), blocks.ids.end());
  pool_->Free(blocks.ids);
  blocks = {};
}

bool GroupManager::Reachable(int64_t block, std::span<const int64_t> boundaries) const {
  if (!sliding()) return true;
  return std::any_of(boundaries.begin(), boundaries.end(), [&](int64_t tokens) {
    const int64_t end = tokens / options_.hit_alignment_tokens * options_.hit_alignment_tokens / block_size();
    return block < end && block >= end - BlocksForHit();
  });
}

void GroupManager::Cache(GroupBlocks& blocks, std::span<const BlockHash> hashes, int64_t num_tokens,
                         std::span<const int64_t> boundaries) {
  const int64_t full_blocks = num_tokens / block_size();
  CHECK(full_blocks <= Size(blocks.ids), full_blocks, " full blocks of ", blocks.ids.size());
  for (int64_t i = blocks.num_cached; i < full_blocks; ++i) {
    const int32_t id = blocks.ids[static_cast<size_t>(i)];
    if (id != kNullBlock && Reachable(i, boundaries)) pool_->Insert(KeyOf(hashes, i), id);
  }
  blocks.num_cached = std::max(blocks.num_cached, full_blocks);
}

}  // namespace vllm
