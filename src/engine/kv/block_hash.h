// Hashes of full KV blocks: a SHA-256 chain, so that one hash names a whole prefix.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace vllm {

// 32 bytes; equal hashes mean equal tokens, salts and parents, back to the first block.
struct BlockHash {
  std::array<uint8_t, 32> bytes = {};
  friend bool operator==(const BlockHash&, const BlockHash&) = default;
};

// What the prefix cache is keyed by: the same prefix has one block in each KV group.
struct BlockKey {
  BlockHash hash = {};
  int32_t group = 0;
  friend bool operator==(const BlockKey&, const BlockKey&) = default;
};

struct BlockKeyHasher {
  size_t operator()(const BlockKey& key) const {
    uint64_t head = 0;  // a SHA-256 digest is uniform: any eight bytes are a hash
    std::memcpy(&head, key.hash.bytes.data(), sizeof(head));
    return head ^ (static_cast<uint64_t>(key.group) * 0x9e3779b97f4a7c15ull);
  }
};

// Parent of every first block.
const BlockHash& NoneHash();

// Hashes blocks of one size. One digest context is reused, so not thread-safe: one hasher a thread.
class BlockHasher {
 public:
  explicit BlockHasher(int block_size);
  ~BlockHasher();
  BlockHasher(const BlockHasher&) = delete;
  BlockHasher& operator=(const BlockHasher&) = delete;

  int block_size() const { return block_size_; }

  // Appends to `hashes` (those of the first blocks of `token_ids`) the hashes of the full blocks that it lacks.
  // `cache_salt` enters the first block only; the chain carries it on. Empty: no salt.
  void Extend(std::span<const int32_t> token_ids, std::string_view cache_salt, std::vector<BlockHash>& hashes);

 private:
  BlockHash Hash(const BlockHash& parent, std::span<const int32_t> token_ids, std::string_view cache_salt);

  int block_size_;
  void* context_;  // EVP_MD_CTX, which is not named here to keep OpenSSL out of headers
};

}  // namespace vllm
