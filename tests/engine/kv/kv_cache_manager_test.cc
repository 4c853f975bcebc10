// KvCacheManager: prefix hits, admission, growth and release, for full, sliding and hybrid caches.
#include "engine/kv/kv_cache_manager.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/engine/sched/scripted_runner.h"

namespace vllm {
namespace {

using Ids = std::vector<int32_t>;

struct Sequence {
  std::vector<int32_t> tokens;
  int64_t num_prompt_tokens = 0;
  int64_t num_computed = 0;
  int64_t num_in_flight = 0;
  KvSequence kv = {};
};

// Drives a manager as the scheduler does.
class Cache {
 public:
  explicit Cache(int64_t num_blocks, std::vector<int> windows = {0}, bool caching = true, double watermark = 0)
      : manager(TestKvConfig(num_blocks, windows), {.enable_caching = caching,
                                                    .watermark = watermark,
                                                    .limits = {.max_model_len = 1024, .max_in_flight_tokens = 64}}) {}

  Sequence Make(int count, int first = 0) {
    Sequence sequence;
    sequence.tokens.resize(static_cast<size_t>(count));
    std::iota(sequence.tokens.begin(), sequence.tokens.end(), first);
    sequence.num_prompt_tokens = count;
    manager.ExtendHashes(sequence.kv, sequence.tokens, {});
    return sequence;
  }

  // Admits with a prefix lookup, computing all of it or `limit` tokens; returns the hit.
  std::optional<int64_t> Admit(Sequence& sequence, int64_t limit = 1 << 20, bool others_run = false) {
    const PrefixHit hit = manager.FindPrefix(sequence.kv, Count(sequence));
    sequence.kv.shared_prefix_boundary = hit.shared_prefix_boundary;
    const int64_t tokens = std::min(limit, Count(sequence) - hit.num_tokens);
    const auto ids = manager.Allocate(sequence.kv, {.num_tokens = Count(sequence),
                                                    .num_prompt_tokens = sequence.num_prompt_tokens,
                                                    .num_new_tokens = tokens,
                                                    .hit = &hit,
                                                    .whole_sequence_must_fit = true,
                                                    .apply_watermark = others_run});
    if (!ids) return std::nullopt;
    sequence.num_computed = hit.num_tokens + tokens;
    return hit.num_tokens;
  }

  std::optional<BlockIds> Grow(Sequence& sequence, int64_t tokens) {
    auto ids = manager.Allocate(sequence.kv, {.num_tokens = Count(sequence),
                                              .num_prompt_tokens = sequence.num_prompt_tokens,
                                              .num_computed_tokens = sequence.num_computed,
                                              .num_in_flight_tokens = sequence.num_in_flight,
                                              .num_new_tokens = tokens});
    if (ids) sequence.num_computed += tokens;
    return ids;
  }

  // One generated token, then its step.
  std::optional<BlockIds> Decode(Sequence& sequence, int32_t token = 7) {
    sequence.tokens.push_back(token);
    manager.ExtendHashes(sequence.kv, sequence.tokens, {});
    return Grow(sequence, 1);
  }

  void Check(std::initializer_list<const Sequence*> sequences) {
    std::vector<const KvSequence*> kv;
    for (const Sequence* sequence : sequences) kv.push_back(&sequence->kv);
    manager.CheckIntegrity(kv);
  }

  static int64_t Count(const Sequence& sequence) { return static_cast<int64_t>(sequence.tokens.size()); }

  KvCacheManager manager;
};

TEST(KvCacheManager, GivesBlocksAsTokensNeedThem) {
  Cache cache(10);
  Sequence a = cache.Make(17);
  EXPECT_EQ(cache.Admit(a), 0);
  EXPECT_EQ(cache.manager.Table(a.kv), (BlockIds{{1, 2}}));
  for (int i = 0; i < 15; ++i) EXPECT_EQ(cache.Decode(a), (BlockIds{{}}));
  EXPECT_EQ(cache.Decode(a), (BlockIds{{3}}));
  cache.Check({&a});
  cache.manager.Free(a.kv);
  EXPECT_EQ(cache.manager.num_used_blocks(), 0);
}

TEST(KvCacheManager, AlwaysLeavesTheLastTokenToCompute) {
  for (const auto& [length, hit] : {std::pair{15, 0}, {16, 0}, {17, 16}, {31, 16}, {32, 16}, {33, 32}}) {
    Cache cache(10);
    Sequence a = cache.Make(length), b = cache.Make(length);
    EXPECT_EQ(cache.Admit(a), 0);
    EXPECT_EQ(cache.Admit(b), hit) << length;
    cache.Check({&a, &b});
  }
}

TEST(KvCacheManager, SharesBlocksOfACommonPrefix) {
  Cache cache(10);
  Sequence a = cache.Make(40), b = cache.Make(40);
  b.tokens[35] = -5;
  b.kv.block_hashes.clear();
  cache.manager.ExtendHashes(b.kv, b.tokens, {});
  cache.Admit(a);
  EXPECT_EQ(cache.Admit(b), 32);
  EXPECT_EQ(cache.manager.Table(b.kv), (BlockIds{{1, 2, 4}}));
  EXPECT_EQ(cache.manager.pool().ref_count(1), 2);
  cache.manager.Free(a.kv);
  EXPECT_EQ(cache.manager.pool().ref_count(1), 1);
  cache.Check({&b});
}

TEST(KvCacheManager, FindsAFreedPrefixUntilItsBlocksAreReused) {
  Cache cache(5);
  Sequence a = cache.Make(33);
  cache.Admit(a);
  cache.manager.Free(a.kv);
  Sequence b = cache.Make(33);
  EXPECT_EQ(cache.manager.FindPrefix(b.kv, 33).num_tokens, 32);
  Sequence other = cache.Make(48, 500);
  EXPECT_EQ(cache.Admit(other), 0);  // takes the unhashed blocks and the tail of a's prefix
  EXPECT_EQ(cache.manager.FindPrefix(b.kv, 33).num_tokens, 16);
}

TEST(KvCacheManager, FindsNothingWithCachingOff) {
  Cache cache(10, {0}, false);
  Sequence a = cache.Make(40), b = cache.Make(40);
  cache.Admit(a);
  EXPECT_EQ(cache.Admit(b), 0);
  EXPECT_TRUE(a.kv.block_hashes.empty());
}

TEST(KvCacheManager, DoesNotFindAcrossSalts) {
  Cache cache(10);
  Sequence a = cache.Make(40), b = cache.Make(40);
  a.kv.block_hashes.clear();
  cache.manager.ExtendHashes(a.kv, a.tokens, "tenant a");
  cache.Admit(a);
  EXPECT_EQ(cache.Admit(b), 0);
}

TEST(KvCacheManager, RefusesWhatDoesNotFitAndLeavesItAsItWas) {
  Cache cache(5);
  Sequence a = cache.Make(33), b = cache.Make(33, 100);
  cache.Admit(a);
  EXPECT_EQ(cache.Admit(b), std::nullopt);
  EXPECT_TRUE(b.kv.groups.empty());
  Sequence c = cache.Make(16, 200);
  EXPECT_EQ(cache.Admit(c), 0);
  EXPECT_EQ(cache.Grow(a, 16), std::nullopt);
  EXPECT_EQ(cache.manager.Table(a.kv), (BlockIds{{1, 2, 3}}));
  cache.Check({&a, &c});
}

TEST(KvCacheManager, AdmitsAChunkOnlyIfTheWholePromptFits) {
  Cache cache(5);
  Sequence a = cache.Make(80);
  EXPECT_EQ(cache.Admit(a, 16), std::nullopt);
  Sequence b = cache.Make(64);
  EXPECT_EQ(cache.Admit(b, 16), 0);
  EXPECT_EQ(cache.manager.num_used_blocks(), 1) << "only the chunk's blocks are taken";
}

TEST(KvCacheManager, CountsFreeHitsAsBlocksToTake) {
  Cache cache(4);
  Sequence a = cache.Make(33);
  cache.Admit(a);
  cache.manager.Free(a.kv);
  Sequence filler = cache.Make(16, 900);
  cache.Admit(filler);  // takes the unhashed block: two hashed ones are left
  Sequence b = cache.Make(33);
  EXPECT_EQ(cache.manager.FindPrefix(b.kv, 33).num_tokens, 32);
  EXPECT_EQ(cache.Admit(b), std::nullopt) << "two hits and a new block are three, and two are free";
}

TEST(KvCacheManager, KeepsTheWatermarkFreeWhileOthersRun) {
  Cache cache(11, {0}, true, 0.2);  // two blocks
  Sequence a = cache.Make(16 * 9);
  EXPECT_EQ(cache.Admit(a, 1 << 20, true), std::nullopt);
  EXPECT_EQ(cache.Admit(a, 1 << 20, false), 0);
}

TEST(KvCacheManager, FreesTheTailFirst) {
  Cache cache(8);
  Sequence a = cache.Make(60);
  cache.Admit(a);
  cache.manager.Free(a.kv);
  EXPECT_EQ(cache.manager.pool().FreeOrder(), (Ids{4, 5, 6, 7, 3, 2, 1}));
}

TEST(KvCacheManager, DoesNotHashDraftTokens) {
  Cache cache(8);
  Sequence a = cache.Make(15);
  cache.Admit(a);
  cache.Grow(a, 3);  // drafts, not among the known tokens
  EXPECT_EQ(cache.manager.pool().num_cached_keys(), 0);
}

TEST(KvCacheManager, ForgetsAFailedSequence) {
  Cache cache(8);
  Sequence a = cache.Make(40), b = cache.Make(40);
  cache.Admit(a);
  cache.manager.FreeAndForget(a.kv, 0);
  EXPECT_EQ(cache.Admit(b), 0);
  cache.Check({&b});
}

TEST(KvCacheManager, ForgetsOnlyWhatIsNotTrusted) {
  Cache cache(8);
  Sequence a = cache.Make(40), b = cache.Make(40);
  cache.Admit(a);
  cache.manager.FreeAndForget(a.kv, 31);
  EXPECT_EQ(cache.Admit(b), 16);
  cache.Check({&b});
}

TEST(KvCacheManager, ResetsOnlyWhenNothingIsHeld) {
  Cache cache(8);
  Sequence a = cache.Make(40), b = cache.Make(40);
  cache.Admit(a);
  EXPECT_FALSE(cache.manager.ResetPrefixCache());
  cache.manager.Free(a.kv);
  EXPECT_TRUE(cache.manager.ResetPrefixCache());
  EXPECT_EQ(cache.Admit(b), 0);
}

TEST(SlidingWindow, FreesBlocksThatLeftTheWindow) {
  Cache cache(20, {32});
  Sequence a = cache.Make(40);
  cache.Admit(a);
  // The token after 40 sees 31 before it, from 9 on: no block is out. After 47 the first one is.
  for (int i = 0; i < 8; ++i) cache.Decode(a);
  EXPECT_EQ(cache.manager.NumNullBlocks(a.kv), (Ids{1}));
  EXPECT_EQ(cache.manager.Table(a.kv)[0].front(), kNullBlock);
  EXPECT_EQ(cache.manager.num_used_blocks(), 2);
  for (int i = 0; i < 200; ++i) {
    cache.Decode(a);
    EXPECT_LE(cache.manager.num_used_blocks(), 3);
    cache.Check({&a});
  }
}

TEST(SlidingWindow, KeepsBlocksThatStepsInFlightMayRead) {
  Cache cache(20, {32});
  Sequence a = cache.Make(64);
  cache.Admit(a);
  a.num_in_flight = 64;
  cache.Decode(a);
  EXPECT_EQ(cache.manager.NumNullBlocks(a.kv), (Ids{0}));
  a.num_in_flight = 1;
  cache.Decode(a);
  EXPECT_EQ(cache.manager.NumNullBlocks(a.kv), (Ids{2}));
}

TEST(SlidingWindow, HitNeedsOnlyTheBlocksOfTheWindow) {
  Cache cache(20, {32});
  Sequence a = cache.Make(100);
  cache.Admit(a, 50);
  cache.Grow(a, 50);
  cache.manager.Free(a.kv);
  Sequence b = cache.Make(100);
  const PrefixHit hit = cache.manager.FindPrefix(b.kv, 100);
  EXPECT_EQ(hit.num_tokens, 96);
  EXPECT_EQ(std::count(hit.blocks[0].begin(), hit.blocks[0].end(), kNullBlock), 4);
  EXPECT_EQ(cache.Admit(b), 96);
  EXPECT_EQ(cache.manager.NumNullBlocks(b.kv), (Ids{4}));
  EXPECT_EQ(cache.manager.num_used_blocks(), 3);
  cache.Check({&b});
}

TEST(SlidingWindow, KeepsOnlyTheWindowBeforeThePromptsEnd) {
  Cache cache(20, {32});
  Sequence a = cache.Make(100);
  cache.Admit(a);
  EXPECT_EQ(cache.manager.pool().num_cached_keys(), 2) << "blocks 4 and 5 of the six full ones";
}

TEST(SlidingWindow, AdmissionIsCappedAtWhatTheWindowHolds) {
  // A window of 32 with 64 tokens in flight holds 31 + 64 tokens: seven blocks at most.
  Cache cache(8, {32});
  Sequence a = cache.Make(900);
  EXPECT_EQ(cache.Admit(a, 32), 0);
  for (int64_t at = 32; at < 900; at += 32) {
    ASSERT_TRUE(cache.Grow(a, std::min<int64_t>(32, 900 - at)));
    cache.Check({&a});
  }
  Cache smaller(7, {32});
  Sequence b = smaller.Make(900);
  EXPECT_EQ(smaller.Admit(b, 32), std::nullopt);
}

TEST(Hybrid, HitIsWhatAllGroupsHold) {
  Cache cache(60, {0, 32});
  Sequence a = cache.Make(100), b = cache.Make(100);
  cache.Admit(a);
  const PrefixHit hit = cache.manager.FindPrefix(b.kv, 100);
  EXPECT_EQ(hit.num_tokens, 96);
  EXPECT_EQ(hit.blocks[0].size(), 6u);
  EXPECT_EQ(hit.blocks[1].size(), 6u);
  EXPECT_EQ(hit.shared_prefix_boundary, 0);
  EXPECT_EQ(cache.Admit(b), 96);
  cache.Check({&a, &b});
}

TEST(Hybrid, PinsAJunctionThatTheWindowHadNotKept) {
  Cache cache(90, {0, 32});
  Sequence a = cache.Make(200), b = cache.Make(200), c = cache.Make(200);
  for (size_t i = 112; i < 200; ++i) b.tokens[i] = -1, c.tokens[i] = -2;
  for (Sequence* s : {&b, &c}) {
    s->kv.block_hashes.clear();
    cache.manager.ExtendHashes(s->kv, s->tokens, {});
  }
  cache.Admit(a);
  EXPECT_EQ(cache.Admit(b), 0) << "a's window group kept only the end of its prompt";
  EXPECT_EQ(b.kv.shared_prefix_boundary, 112);
  EXPECT_EQ(cache.Admit(c), 112) << "b kept the window before the junction";
  cache.Check({&a, &b, &c});
}

TEST(Hybrid, AgreesAmongGroupsOfOneKind) {
  // Two window groups: what one has lost, the hit cannot use.
  Cache cache(60, {32, 32, 0});
  Sequence a = cache.Make(100), b = cache.Make(100);
  cache.Admit(a);
  EXPECT_EQ(cache.manager.FindPrefix(b.kv, 100).num_tokens, 96);
  cache.manager.Free(a.kv);
  // Reuse freed blocks until a hash of one window group is gone.
  std::vector<Sequence> fillers;
  while (cache.manager.FindPrefix(b.kv, 100).num_tokens == 96) {
    fillers.push_back(cache.Make(16, 1000 + 100 * static_cast<int>(fillers.size())));
    ASSERT_TRUE(cache.Admit(fillers.back()).has_value());
  }
  const PrefixHit hit = cache.manager.FindPrefix(b.kv, 100);
  EXPECT_EQ(hit.num_tokens, 0);
  for (const Ids& ids : hit.blocks) EXPECT_TRUE(ids.empty());
}

TEST(Hybrid, ConvergesWithTwoWindows) {
  Cache cache(80, {0, 32, 64});
  Sequence a = cache.Make(150), b = cache.Make(150);
  cache.Admit(a);
  EXPECT_EQ(cache.manager.FindPrefix(b.kv, 150).num_tokens, 144);
  EXPECT_EQ(cache.Admit(b), 144);
  EXPECT_EQ(cache.manager.NumNullBlocks(b.kv), (Ids{0, 7, 5}));
  cache.Check({&a, &b});
}

TEST(Hybrid, CoarserBlocksAreNamedByTheirLastHash) {
  KvCacheConfig config = TestKvConfig(40, {0, 32});
  config.groups[0].spec.block_size = 32;
  KvCacheManager manager(config, {.limits = {.max_model_len = 1024, .max_in_flight_tokens = 64}});
  std::vector<int32_t> tokens(100, 3);
  KvSequence a, b;
  manager.ExtendHashes(a, tokens, {});
  manager.ExtendHashes(b, tokens, {});
  EXPECT_EQ(a.block_hashes.size(), 6u);
  const PrefixHit none = manager.FindPrefix(a, 100);
  EXPECT_EQ(none.num_tokens, 0);
  ASSERT_TRUE(manager.Allocate(a, {.num_tokens = 100, .num_prompt_tokens = 100, .num_new_tokens = 100, .hit = &none}));
  const PrefixHit hit = manager.FindPrefix(b, 100);
  EXPECT_EQ(hit.num_tokens, 96) << "hits end on multiples of 32";
  EXPECT_EQ(hit.blocks[0].size(), 3u);
  EXPECT_EQ(hit.blocks[1].size(), 6u);
  EXPECT_EQ(manager.FindPrefix(b, 95).num_tokens, 0) << "the window group kept only the blocks before 96";
}

}  // namespace
}  // namespace vllm
