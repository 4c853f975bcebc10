// BlockPool: V1's order of reuse, reference counts, the prefix map, and all invariants under random use.
#include "engine/kv/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/check.h"

namespace vllm {
namespace {

using Ids = std::vector<int32_t>;

BlockKey Key(int n, int group = 0) {
  BlockKey key{.group = group};
  key.hash.bytes[0] = static_cast<uint8_t>(n);
  key.hash.bytes[8] = static_cast<uint8_t>(n >> 8);
  return key;
}

TEST(BlockPool, HandsOutFreshBlocksByIdAndNeverTheNullBlock) {
  BlockPool pool(5, true);
  EXPECT_EQ(pool.num_free(), 4);
  EXPECT_EQ(pool.Allocate(4), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_EQ(pool.num_used(), 4);
  EXPECT_THROW(pool.Allocate(1), base::InternalError);
}

TEST(BlockPool, ReusesBlocksWithoutAHashFirstInTheOrderGiven) {
  BlockPool pool(8, true);
  const Ids ids = pool.Allocate(3);
  pool.Free(Ids{3, 2, 1});
  EXPECT_EQ(pool.FreeOrder(), (Ids{3, 2, 1, 4, 5, 6, 7}));
}

TEST(BlockPool, KeepsHashedBlocksLongest) {
  BlockPool pool(8, true);
  pool.Allocate(4);
  pool.Insert(Key(1), 1);
  pool.Insert(Key(2), 2);
  pool.Free(Ids{4, 3, 2, 1});
  EXPECT_EQ(pool.FreeOrder(), (Ids{4, 3, 5, 6, 7, 2, 1}));
}

TEST(BlockPool, PutsUnhashedBeforeHashedIntoAnEmptyList) {
  BlockPool pool(4, true);
  pool.Allocate(3);
  pool.Insert(Key(2), 2);
  pool.Free(Ids{3, 2, 1});
  EXPECT_EQ(pool.FreeOrder(), (Ids{3, 1, 2}));
}

TEST(BlockPool, ForgetsAHashOnlyWhenItsBlockIsReused) {
  BlockPool pool(3, true);
  pool.Allocate(1);
  pool.Insert(Key(1), 1);
  pool.Free(Ids{1});
  EXPECT_EQ(pool.Find(Key(1)), 1);
  pool.Allocate(1);  // block 2
  EXPECT_EQ(pool.Find(Key(1)), 1);
  pool.Allocate(1);  // block 1
  EXPECT_EQ(pool.Find(Key(1)), std::nullopt);
}

TEST(BlockPool, TouchTakesAFreeBlockOffTheList) {
  BlockPool pool(4, true);
  pool.Allocate(2);
  pool.Insert(Key(1), 1);
  pool.Free(Ids{1});
  pool.Touch(Ids{1, 2, kNullBlock});
  EXPECT_EQ(pool.ref_count(1), 1);
  EXPECT_EQ(pool.ref_count(2), 2);
  EXPECT_EQ(pool.FreeOrder(), (Ids{3}));
  pool.Free(Ids{2});
  EXPECT_EQ(pool.ref_count(2), 1);
  EXPECT_EQ(pool.FreeOrder(), (Ids{3}));
}

TEST(BlockPool, FindsTheOldestOfSeveralBlocksWithOneKey) {
  BlockPool pool(5, true);
  pool.Allocate(4);
  for (const int32_t id : {3, 1, 2}) pool.Insert(Key(7), id);
  EXPECT_EQ(pool.Find(Key(7)), 3);
  pool.Evict(1);
  pool.Evict(3);
  EXPECT_EQ(pool.Find(Key(7)), 2);
  pool.Evict(2);
  EXPECT_EQ(pool.Find(Key(7)), std::nullopt);
  pool.CheckIntegrity();
}

TEST(BlockPool, KeepsKeysOfGroupsApart) {
  BlockPool pool(3, true);
  pool.Allocate(2);
  pool.Insert(Key(1, 0), 1);
  pool.Insert(Key(1, 1), 2);
  EXPECT_EQ(pool.Find(Key(1, 0)), 1);
  EXPECT_EQ(pool.Find(Key(1, 1)), 2);
}

TEST(BlockPool, ResetsOnlyWhenNothingIsInUse) {
  BlockPool pool(3, true);
  pool.Allocate(1);
  pool.Insert(Key(1), 1);
  EXPECT_FALSE(pool.ResetPrefixCache());
  EXPECT_EQ(pool.Find(Key(1)), 1);
  pool.Free(Ids{1});
  EXPECT_TRUE(pool.ResetPrefixCache());
  EXPECT_EQ(pool.Find(Key(1)), std::nullopt);
  EXPECT_EQ(pool.num_cached_keys(), 0);
  pool.CheckIntegrity();
}

TEST(BlockPool, CountsUsageWithoutTheNullBlock) {
  BlockPool pool(5, false);
  EXPECT_EQ(pool.usage(), 0.0);
  pool.Allocate(1);
  EXPECT_EQ(pool.usage(), 0.25);
  EXPECT_EQ(BlockPool(1, false).usage(), 0.0);
}

TEST(BlockPool, CatchesMisuse) {
  BlockPool pool(3, true);
  pool.Allocate(1);
  pool.Insert(Key(1), 1);
  EXPECT_THROW(pool.Insert(Key(2), 1), base::InternalError) << "second hash";
  EXPECT_THROW(pool.Insert(Key(2), 2), base::InternalError) << "free block";
  EXPECT_THROW(pool.Free(Ids{2}), base::InternalError) << "double free";
  EXPECT_THROW(pool.Free(Ids{3}), base::InternalError) << "no such block";
}

// A model of the pool in plain containers, against which every operation is compared.
struct Mirror {
  std::vector<int32_t> free_order;
  std::map<int32_t, int> references;
  std::map<int32_t, int> key_of;
  std::vector<std::pair<int, int32_t>> inserted;  // oldest first

  void Evict(int32_t id) {
    key_of.erase(id);
    std::erase_if(inserted, [&](const auto& entry) { return entry.second == id; });
  }
  std::optional<int32_t> Find(int key) const {
    for (const auto& [k, id] : inserted) {
      if (k == key) return id;
    }
    return std::nullopt;
  }
};

TEST(BlockPool, BehavesAsAPlainModelUnderRandomUse) {
  constexpr int kBlocks = 24;
  std::mt19937 random(7);
  BlockPool pool(kBlocks, true);
  Mirror mirror;
  for (int id = 1; id < kBlocks; ++id) mirror.free_order.push_back(id);
  std::vector<Ids> held;
  for (int step = 0; step < 20000; ++step) {
    const unsigned action = random() % 5;
    if (action == 0) {
      const int64_t count = static_cast<int64_t>(random() % 5);
      if (count > pool.num_free()) continue;
      const Ids ids = pool.Allocate(count);
      ASSERT_EQ(ids, Ids(mirror.free_order.begin(), mirror.free_order.begin() + count));
      mirror.free_order.erase(mirror.free_order.begin(), mirror.free_order.begin() + count);
      for (const int32_t id : ids) {
        mirror.Evict(id);
        mirror.references[id] = 1;
      }
      if (!ids.empty()) held.push_back(ids);
    } else if (action == 1 && !held.empty()) {
      const size_t which = random() % held.size();
      Ids ids = held[which];
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      std::reverse(ids.begin(), ids.end());
      pool.Free(ids);
      Ids front;
      for (const int32_t id : ids) {
        if (--mirror.references[id] > 0) continue;
        mirror.key_of.count(id) ? mirror.free_order.push_back(id) : front.push_back(id);
      }
      mirror.free_order.insert(mirror.free_order.begin(), front.begin(), front.end());
    } else if (action == 2 && !held.empty()) {
      const Ids& ids = held[random() % held.size()];
      const int32_t id = ids[random() % ids.size()];
      const int key = static_cast<int>(random() % 6);
      if (mirror.key_of.count(id)) continue;
      pool.Insert(Key(key), id);
      mirror.key_of[id] = key;
      mirror.inserted.emplace_back(key, id);
    } else if (action == 3) {
      const std::optional<int32_t> id = pool.Find(Key(static_cast<int>(random() % 6)));
      if (!id) continue;
      pool.Touch(Ids{*id});
      if (mirror.references[*id]++ == 0) std::erase(mirror.free_order, *id);
      held.push_back({*id});
    } else if (action == 4 && random() % 8 == 0) {
      const int32_t id = static_cast<int32_t>(1 + random() % (kBlocks - 1));
      pool.Evict(id);
      mirror.Evict(id);
    }
    pool.CheckIntegrity();
    ASSERT_EQ(pool.FreeOrder(), mirror.free_order) << step;
    for (int key = 0; key < 6; ++key) ASSERT_EQ(pool.Find(Key(key)), mirror.Find(key)) << step;
  }
}

}  // namespace
}  // namespace vllm
