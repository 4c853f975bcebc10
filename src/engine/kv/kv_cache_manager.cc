// KvCacheManager: coordination of KV groups over one block pool, with vLLM V1's rules.
#include "engine/kv/kv_cache_manager.h"

#include <algorithm>

#include "base/check.h"

namespace vllm {
namespace {

int64_t Size(const auto& container) { return static_cast<int64_t>(container.size()); }

}  // namespace

KvCacheManager::KvCacheManager(const KvCacheConfig& config, const Options& options)
    : config_(config),
      options_(options),
      watermark_blocks_(static_cast<int64_t>(options.watermark * static_cast<double>(config.num_blocks))),
      hit_alignment_tokens_(HitAlignmentTokens(config.groups)),
      pool_(config.num_blocks, options.enable_caching),
      hasher_(HashBlockSize(config.groups)) {
  CHECK(options.watermark >= 0 && options.watermark < 1, "watermark ", options.watermark);
  CHECK(config.groups.empty() || config.num_blocks >= 2, "num_blocks ", config.num_blocks);
  for (size_t i = 0; i < config.groups.size(); ++i) {
    const KvCacheSpec& spec = config.groups[i].spec;
    groups_.emplace_back(spec,
                         GroupManager::Options{.group = static_cast<int>(i),
                                               .hash_block_size = hasher_.block_size(),
                                               .hit_alignment_tokens = static_cast<int>(hit_alignment_tokens_),
                                               .limits = options.limits},
                         &pool_);
    auto same = std::find_if(lookups_.begin(), lookups_.end(),
                             [&](const LookupGroup& lookup) { return config.groups[lookup.groups[0]].spec == spec; });
    if (same == lookups_.end()) {
      const bool full_attention = spec.kind == KvCacheKind::kFullAttention;
      const auto place = full_attention ? std::find_if_not(lookups_.begin(), lookups_.end(),
                                                           [](const LookupGroup& l) { return l.full_attention; })
                                        : lookups_.end();
      same = lookups_.insert(place, {.full_attention = full_attention});
    }
    same->groups.push_back(i);
  }
}

void KvCacheManager::ExtendHashes(KvSequence& sequence, std::span<const int32_t> token_ids,
                                  std::string_view cache_salt) {
  if (options_.enable_caching && !groups_.empty()) hasher_.Extend(token_ids, cache_salt, sequence.block_hashes);
}

PrefixHit KvCacheManager::FindPrefix(const KvSequence& sequence, int64_t num_tokens) const {
  PrefixHit none{.blocks = BlockIds(groups_.size())};
  const int64_t max_tokens = num_tokens - 1;
  if (!options_.enable_caching || groups_.empty() || max_tokens <= 0) return none;
  if (groups_.size() > 1) return FindHybridPrefix(sequence.block_hashes, max_tokens);
  none.blocks[0] = groups_[0].FindHits(sequence.block_hashes, max_tokens);
  none.num_tokens = Size(none.blocks[0]) * groups_[0].block_size();
  return none;
}

std::vector<std::vector<int32_t>> KvCacheManager::FindInGroups(const LookupGroup& lookup,
                                                               std::span<const BlockHash> hashes,
                                                               int64_t max_tokens) const {
  // Blocks of one prefix are cached by all groups of a spec in one go, but evicted one by one. Shrink until all agree.
  std::vector<std::vector<int32_t>> found(lookup.groups.size());
  for (;;) {
    int64_t shortest = max_tokens;
    for (size_t i = 0; i < lookup.groups.size(); ++i) {
      const GroupManager& group = groups_[lookup.groups[i]];
      found[i] = group.FindHits(hashes, max_tokens);
      shortest = std::min(shortest, Size(found[i]) * group.block_size());
    }
    const bool agreed = std::all_of(found.begin(), found.end(), [&](const std::vector<int32_t>& hits) {
      return Size(hits) * groups_[lookup.groups[0]].block_size() == shortest;
    });
    if (agreed) return found;
    max_tokens = shortest;
  }
}

// Each kind accepts the candidate length or shortens it; repeated until all accept. Full attention is closed downwards,
// so its hits are cut instead of being looked up again, and with a single other kind one pass suffices.
PrefixHit KvCacheManager::FindHybridPrefix(std::span<const BlockHash> hashes, int64_t max_tokens) const {
  PrefixHit hit{.blocks = BlockIds(groups_.size()), .num_tokens = max_tokens};
  const bool one_pass = lookups_.size() == 2 && lookups_[0].full_attention;
  bool full_attention_done = false;
  int64_t full_attention_tokens = 0, longest = 0;
  for (;;) {
    int64_t length = hit.num_tokens;
    for (const LookupGroup& lookup : lookups_) {
      if (lookup.full_attention && full_attention_done) {
        length = std::min(length, full_attention_tokens);
        continue;
      }
      std::vector<std::vector<int32_t>> found = FindInGroups(lookup, hashes, length);
      length = Size(found[0]) * groups_[lookup.groups[0]].block_size();
      for (size_t i = 0; i < found.size(); ++i) hit.blocks[lookup.groups[i]] = std::move(found[i]);
      if (lookup.full_attention) {
        full_attention_done = true;
        full_attention_tokens = length;
      }
      longest = std::max(longest, length);
    }
    const bool accepted = length >= hit.num_tokens;
    hit.num_tokens = std::min(hit.num_tokens, length);
    if (accepted || one_pass) break;
  }
  for (const LookupGroup& lookup : lookups_) {
    if (!lookup.full_attention) continue;
    for (const size_t g : lookup.groups) {
      hit.blocks[g].resize(static_cast<size_t>(hit.num_tokens / groups_[g].block_size()));
    }
  }
  if (longest > hit.num_tokens) hit.shared_prefix_boundary = longest;
  return hit;
}

int64_t KvCacheManager::NumBlocksToTake(const KvSequence& sequence, const PrefixHit* hit,
                                        const GroupManager::Need& need) const {
  static const GroupBlocks kEmpty;
  int64_t blocks = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const GroupBlocks& held = sequence.groups.empty() ? kEmpty : sequence.groups[g];
    const std::span<const int32_t> hits = hit == nullptr ? std::span<const int32_t>() : hit->blocks[g];
    blocks += groups_[g].BlocksNeeded(held, hits, need);
  }
  return blocks;
}

std::optional<BlockIds> KvCacheManager::Allocate(KvSequence& sequence, const Slots& slots) {
  CHECK(slots.num_new_tokens > 0, "num_new_tokens ", slots.num_new_tokens);
  CHECK(slots.hit == nullptr || sequence.groups.empty(), "a hit for a sequence that holds blocks");
  const int64_t max_model_len = options_.limits.max_model_len;
  const int64_t hit_tokens = slots.hit == nullptr ? 0 : slots.hit->num_tokens;
  const int64_t computed = std::min(slots.num_computed_tokens + hit_tokens, max_model_len);
  const int64_t spare = slots.apply_watermark ? watermark_blocks_ : 0;
  if (slots.whole_sequence_must_fit) {
    const int64_t whole = NumBlocksToTake(
        sequence, slots.hit,
        {.num_tokens = std::min(slots.num_tokens, max_model_len), .num_computed_tokens = computed, .cap = true});
    if (whole + spare > pool_.num_free()) return std::nullopt;
  }
  const bool fresh = sequence.groups.empty();
  if (fresh) sequence.groups.resize(groups_.size());
  const int64_t settled = std::max<int64_t>(0, computed - slots.num_in_flight_tokens);
  if (!fresh) {
    for (size_t g = 0; g < groups_.size(); ++g) groups_[g].FreeSkipped(sequence.groups[g], settled);
  }
  const int64_t slot_tokens = std::min(computed + slots.num_new_tokens + slots.num_lookahead_tokens, max_model_len);
  const int64_t needed =
      NumBlocksToTake(sequence, slots.hit, {.num_tokens = slot_tokens, .num_computed_tokens = computed});
  if (needed + spare > pool_.num_free()) {
    if (fresh) sequence.groups.clear();
    return std::nullopt;
  }
  if (slots.hit != nullptr) {
    // All groups take their hits before any takes new blocks, which could evict another group's hits.
    for (size_t g = 0; g < groups_.size(); ++g) {
      groups_[g].AddHits(sequence.groups[g], slots.hit->blocks[g], slots.hit->num_tokens);
    }
  }
  BlockIds new_ids(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) new_ids[g] = groups_[g].Grow(sequence.groups[g], slot_tokens);
  // Draft tokens are not known to stay, so they are never hashed.
  CacheBlocks(sequence, slots.num_prompt_tokens, std::min(computed + slots.num_new_tokens, slots.num_tokens));
  return new_ids;
}

void KvCacheManager::CacheBlocks(KvSequence& sequence, int64_t num_prompt_tokens, int64_t num_tokens) {
  if (!options_.enable_caching || sequence.groups.empty()) return;
  // A later request with the same prompt starts at its last token, which it computes for its logits.
  const int64_t boundaries[] = {num_prompt_tokens - 1, sequence.shared_prefix_boundary};
  const int64_t cacheable = num_tokens / hit_alignment_tokens_ * hit_alignment_tokens_;
  for (size_t g = 0; g < groups_.size(); ++g) {
    groups_[g].Cache(sequence.groups[g], sequence.block_hashes, cacheable, boundaries);
  }
}

void KvCacheManager::Free(KvSequence& sequence) {
  for (size_t g = 0; g < sequence.groups.size(); ++g) groups_[g].Free(sequence.groups[g]);
  sequence.groups.clear();
}

void KvCacheManager::FreeAndForget(KvSequence& sequence, int64_t num_trusted_tokens) {
  for (size_t g = 0; g < sequence.groups.size(); ++g) {
    const std::vector<int32_t>& ids = sequence.groups[g].ids;
    for (int64_t i = num_trusted_tokens / groups_[g].block_size(); i < Size(ids); ++i) {
      const int32_t id = ids[static_cast<size_t>(i)];
      // A block that others hold was computed by others.
      if (id != kNullBlock && pool_.ref_count(id) == 1) pool_.Evict(id);
    }
  }
  Free(sequence);
}

int64_t KvCacheManager::NumBlocksNeeded(int64_t num_tokens) const {
  return KvBlocksNeeded(config_.groups, num_tokens, options_.limits);
}

BlockIds KvCacheManager::Table(const KvSequence& sequence) const {
  BlockIds table(groups_.size());
  for (size_t g = 0; g < sequence.groups.size(); ++g) table[g] = sequence.groups[g].ids;
  return table;
}

std::vector<int32_t> KvCacheManager::NumNullBlocks(const KvSequence& sequence) const {
  std::vector<int32_t> counts(groups_.size());
  for (size_t g = 0; g < sequence.groups.size(); ++g) counts[g] = static_cast<int32_t>(sequence.groups[g].num_null);
  return counts;
}

void KvCacheManager::RecordPrefixStats(int64_t queries, int64_t hits, bool preempted) {
  (preempted ? prefix_stats_.preempted_queries : prefix_stats_.queries) += static_cast<uint64_t>(queries);
  (preempted ? prefix_stats_.preempted_hits : prefix_stats_.hits) += static_cast<uint64_t>(hits);
}

void KvCacheManager::CheckIntegrity(std::span<const KvSequence* const> sequences) const {
  pool_.CheckIntegrity();
  std::vector<int> references(static_cast<size_t>(pool_.num_blocks()));
  for (const KvSequence* sequence : sequences) {
    for (const GroupBlocks& blocks : sequence->groups) {
      for (int64_t i = 0; i < Size(blocks.ids); ++i) {
        const int32_t id = blocks.ids[static_cast<size_t>(i)];
        CHECK((id == kNullBlock) == (i < blocks.num_null), "entry ", i, " is block ", id);
        ++references[static_cast<size_t>(id)];
      }
    }
  }
  for (int32_t id = 1; id < pool_.num_blocks(); ++id) {
    const int held = references[static_cast<size_t>(id)];
    CHECK(pool_.ref_count(id) == held, "block ", id, " has ", pool_.ref_count(id), " references, ", held, " holders");
  }
}

}  // namespace vllm
