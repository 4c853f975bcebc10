// Block hashes: a chain that depends on everything before it, and on the salt.
#include "engine/kv/block_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace vllm {
namespace {

std::vector<int32_t> Tokens(int count, int first = 0) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

std::vector<BlockHash> HashesOf(const std::vector<int32_t>& tokens, std::string_view salt = {}) {
  BlockHasher hasher(16);
  std::vector<BlockHash> hashes;
  hasher.Extend(tokens, salt, hashes);
  return hashes;
}

std::string Hex(const BlockHash& hash) {
  std::string text;
  for (const uint8_t byte : hash.bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// The expected digests are hashlib.sha256's: of b"vllm-none-hash", and of that digest, the ids 0 .. 15 as little-endian
// int32, and for the salted one the length as a little-endian uint64 and the salt.
TEST(BlockHash, OfNothingIsTheDigestOfItsSeed) {
  EXPECT_EQ(Hex(NoneHash()), "f686fa608338aa1214aa507d5614f9d707d8576a22ab678a080259f8b5bf9bf2");
}

TEST(BlockHash, IsSha256OfParentTokensAndSalt) {
  EXPECT_EQ(Hex(HashesOf(Tokens(16))[0]), "32ef605d5fab4ecfdfac6b2c67d253c567f8cdd51e5ac30162c764e2ab53acd0");
  EXPECT_EQ(Hex(HashesOf(Tokens(16), "pepper")[0]), "019e0a0fc25f3f1f261dad3dd4803b7ba4315850ee65d2f83565b5d40bf0c879");
}

TEST(BlockHash, CoversFullBlocksOnly) {
  EXPECT_EQ(HashesOf(Tokens(15)).size(), 0u);
  EXPECT_EQ(HashesOf(Tokens(16)).size(), 1u);
  EXPECT_EQ(HashesOf(Tokens(47)).size(), 2u);
}

TEST(BlockHash, OfALaterBlockDependsOnEveryTokenBefore) {
  std::vector<int32_t> other = Tokens(48);
  other[0] = 99;
  const std::vector<BlockHash> a = HashesOf(Tokens(48)), b = HashesOf(other);
  for (size_t i = 0; i < 3; ++i) EXPECT_NE(a[i], b[i]) << i;
}

TEST(BlockHash, IsTheSameWhenTokensArriveOneByOne) {
  const std::vector<int32_t> tokens = Tokens(64);
  BlockHasher hasher(16);
  std::vector<BlockHash> hashes;
  for (size_t n = 1; n <= tokens.size(); ++n) hasher.Extend(std::span(tokens).first(n), "s", hashes);
  EXPECT_EQ(hashes, HashesOf(tokens, "s"));
}

TEST(BlockHash, SaltChangesTheWholeChain) {
  const std::vector<BlockHash> a = HashesOf(Tokens(32)), b = HashesOf(Tokens(32), "x"), c = HashesOf(Tokens(32), "y");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NE(a[i], b[i]);
    EXPECT_NE(b[i], c[i]);
  }
}

TEST(BlockKeyHasher, TellsGroupsApart) {
  const BlockHash hash = HashesOf(Tokens(16))[0];
  EXPECT_NE(BlockKeyHasher()({hash, 0}), BlockKeyHasher()({hash, 1}));
  EXPECT_NE((BlockKey{hash, 0}), (BlockKey{hash, 1}));
}

}  // namespace
}  // namespace vllm
