// Hashes of full KV blocks: a SHA-256 chain through OpenSSL's EVP interface.
#include "engine/kv/block_hash.h"

#include <openssl/evp.h>

#include <bit>
#include <memory>

#include "base/check.h"

namespace vllm {
namespace {

static_assert(std::endian::native == std::endian::little, "token ids are hashed as little-endian bytes");

struct MdFree {
  void operator()(EVP_MD* md) const { EVP_MD_free(md); }
};

// Fetched once a process: an implicit fetch at each digest triples its cost.
const EVP_MD* Sha256() {
  static const std::unique_ptr<EVP_MD, MdFree> md(EVP_MD_fetch(nullptr, "SHA256", nullptr));
  CHECK(md != nullptr, "OpenSSL has no SHA256");
  return md.get();
}

class Digest {
 public:
  explicit Digest(EVP_MD_CTX* context) : context_(context) {
    CHECK(EVP_DigestInit_ex2(context_, Sha256(), nullptr) == 1, "EVP_DigestInit_ex2");
  }
  Digest& Add(const void* data, size_t bytes) {
    CHECK(EVP_DigestUpdate(context_, data, bytes) == 1, "EVP_DigestUpdate");
    return *this;
  }
  BlockHash Finish() {
    BlockHash hash;
    unsigned size = 0;
    CHECK(EVP_DigestFinal_ex(context_, hash.bytes.data(), &size) == 1 && size == hash.bytes.size(), "size ", size);
    return hash;
  }

 private:
  EVP_MD_CTX* context_;
};

EVP_MD_CTX* NewContext() {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  CHECK(context != nullptr, "EVP_MD_CTX_new");
  return context;
}

}  // namespace

const BlockHash& NoneHash() {
  static const BlockHash hash = [] {
    constexpr std::string_view kSeed = "vllm-none-hash";
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(NewContext(), EVP_MD_CTX_free);
    return Digest(context.get()).Add(kSeed.data(), kSeed.size()).Finish();
  }();
  return hash;
}

BlockHasher::BlockHasher(int block_size) : block_size_(block_size), context_(NewContext()) {
  CHECK(block_size > 0, "block_size ", block_size);
}

BlockHasher::~BlockHasher() { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context_)); }

BlockHash BlockHasher::Hash(const BlockHash& parent, std::span<const int32_t> token_ids, std::string_view cache_salt) {
  Digest digest(static_cast<EVP_MD_CTX*>(context_));
  digest.Add(parent.bytes.data(), parent.bytes.size()).Add(token_ids.data(), token_ids.size_bytes());
  // The token count is fixed, so a salt can only be confused with another salt; its length rules that out too.
  if (!cache_salt.empty()) {
    const uint64_t size = cache_salt.size();
    digest.Add(&size, sizeof(size)).Add(cache_salt.data(), cache_salt.size());
  }
  return digest.Finish();
}

void BlockHasher::Extend(std::span<const int32_t> token_ids, std::string_view cache_salt,
                         std::vector<BlockHash>& hashes) {
  const size_t block = static_cast<size_t>(block_size_);
  const size_t full_blocks = token_ids.size() / block;
  if (full_blocks > hashes.size() + 1) hashes.reserve(full_blocks);
  for (size_t i = hashes.size(); i < full_blocks; ++i) {
    const BlockHash& parent = i == 0 ? NoneHash() : hashes[i - 1];
    hashes.push_back(Hash(parent, token_ids.subspan(i * block, block), i == 0 ? cache_salt : std::string_view()));
  }
}

}  // namespace vllm
