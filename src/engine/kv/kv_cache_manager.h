// Gives sequences their KV blocks: prefix-cache lookup, admission, growth, sliding windows, release. Owns ids, never
// bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/kv/block_hash.h"
#include "engine/kv/block_pool.h"
#include "engine/kv/group_manager.h"
#include "engine/kv/kv_cache_config.h"
#include "engine/sched/scheduler_output.h"

namespace vllm {

// What a sequence holds of the KV cache. Lives in its request; only KvCacheManager changes it.
struct KvSequence {
  std::vector<BlockHash> block_hashes = {};  // of its full hash blocks
  std::vector<GroupBlocks> groups = {};      // empty: holds nothing
  // A prefix that other requests share and that sliding-window groups had not kept; 0: none. Its window is kept from
  // now on.
  int64_t shared_prefix_boundary = 0;
};

// Blocks that a new sequence can start from.
struct PrefixHit {
  BlockIds blocks = {};  // by group; null blocks before a window
  int64_t num_tokens = 0;
  int64_t shared_prefix_boundary = 0;  // 0: none
};

struct PrefixCacheStats {
  uint64_t queries = 0, hits = 0;                      // tokens, of first admissions
  uint64_t preempted_queries = 0, preempted_hits = 0;  // tokens, of later ones
};

// Engine thread only, but for the const arithmetic of NumBlocksNeeded and num_usable_blocks.
class KvCacheManager {
 public:
  struct Options {
    bool enable_caching = true;
    double watermark = 0;  // fraction of the pool kept free when a waiting sequence joins running ones
    KvLimits limits = {};
  };

  // CHECKs that the pool has a null block and, with groups, at least one more.
  KvCacheManager(const KvCacheConfig& config, const Options& options);

  // Hashes the full blocks of `token_ids` that have no hash yet. Nothing when caching is off.
  void ExtendHashes(KvSequence& sequence, std::span<const int32_t> token_ids, std::string_view cache_salt);

  // Longest prefix that all groups hold, at most num_tokens - 1: the last token is always computed, for its logits.
  PrefixHit FindPrefix(const KvSequence& sequence, int64_t num_tokens) const;

  struct Slots {
    int64_t num_tokens = 0;  // known ones: prompt and outputs
    int64_t num_prompt_tokens = 0;
    int64_t num_computed_tokens = 0;   // before this step, without the hit
    int64_t num_in_flight_tokens = 0;  // of num_computed_tokens: in steps not yet finished
    int64_t num_new_tokens = 0;
    int64_t num_lookahead_tokens = 0;  // slots for a drafter beyond them
    const PrefixHit* hit = nullptr;    // of a sequence that holds nothing yet
    bool whole_sequence_must_fit = false;
    bool apply_watermark = false;
  };
  // Frees what left the window, then takes blocks for the step and offers full ones to the prefix cache. Returns the
  // new ids by group (without hits), or nothing if the pool has too few; then the sequence holds what it held.
  std::optional<BlockIds> Allocate(KvSequence& sequence, const Slots& slots);

  // Offers full blocks whose tokens became known after their step was scheduled.
  void CacheBlocks(KvSequence& sequence, int64_t num_prompt_tokens, int64_t num_tokens);
  // Gives everything back; hashes of the sequence stay.
  void Free(KvSequence& sequence);
  // As Free, but blocks that reach beyond the first `num_trusted_tokens` cannot be found again: what they hold
  // is wrong, or was never computed.
  void FreeAndForget(KvSequence& sequence, int64_t num_trusted_tokens);

  bool ResetPrefixCache() { return pool_.ResetPrefixCache(); }

  // Blocks of one sequence of that length at its largest; a longer one than the pool can never run. Thread-safe.
  int64_t NumBlocksNeeded(int64_t num_tokens) const;
  int64_t num_usable_blocks() const { return config_.num_blocks - 1; }  // thread-safe

  BlockIds Table(const KvSequence& sequence) const;
  std::vector<int32_t> NumNullBlocks(const KvSequence& sequence) const;

  bool caching() const { return options_.enable_caching; }
  double usage() const { return pool_.usage(); }
  int64_t num_used_blocks() const { return pool_.num_used(); }
  int64_t num_free_blocks() const { return pool_.num_free(); }
  const BlockPool& pool() const { return pool_; }
  const KvCacheConfig& config() const { return config_; }

  void RecordPrefixStats(int64_t queries, int64_t hits, bool preempted);
  const PrefixCacheStats& prefix_stats() const { return prefix_stats_; }

  // CHECKs the pool, and that its reference counts are those of the given sequences.
  void CheckIntegrity(std::span<const KvSequence* const> sequences) const;

 private:
  // Groups of equal spec are looked up together: a block must be cached in each.
  struct LookupGroup {
    bool full_attention = false;
    std::vector<size_t> groups = {};
  };

  PrefixHit FindHybridPrefix(std::span<const BlockHash> hashes, int64_t max_tokens) const;
  std::vector<std::vector<int32_t>> FindInGroups(const LookupGroup& lookup, std::span<const BlockHash> hashes,
                                                 int64_t max_tokens) const;
  int64_t NumBlocksToTake(const KvSequence& sequence, const PrefixHit* hit, const GroupManager::Need& need) const;

  KvCacheConfig config_;
  Options options_;
  int64_t watermark_blocks_ = 0;
  int64_t hit_alignment_tokens_ = 1;
  BlockPool pool_;
  BlockHasher hasher_;
  std::vector<GroupManager> groups_;
  std::vector<LookupGroup> lookups_;  // full attention first: its hits are found once, others only shorten them
  PrefixCacheStats prefix_stats_;
};

}  // namespace vllm
