// What a layer keeps in the KV cache. The KV manager owns block ids; the runner owns the bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vt/kv_page.h"
#include "vt/numerics.h"

namespace vllm {

enum class KvCacheKind : int8_t { kFullAttention, kSlidingWindow };

// One layer's need. Layers of equal spec (all but layer) may share a group.
struct KvCacheSpec {
  KvCacheKind kind = KvCacheKind::kFullAttention;
  int block_size = 0;  // tokens, a multiple of 16
  int kv_heads = 0, head_dim = 0;
  vt::DType dtype = vt::DType::kBF16;
  int window = 0;  // tokens, for kSlidingWindow
  vt::KvPage page() const { return {dtype, block_size, kv_heads, head_dim}; }
  int64_t page_bytes() const { return page().bytes(); }
  friend bool operator==(const KvCacheSpec&, const KvCacheSpec&) = default;
};

struct LayerKvCache {
  int layer = 0;  // index among the model's attention sublayers, in order
  KvCacheSpec spec = {};
};

// The cache's type by its name in --kv-cache-dtype; nothing for "auto" and for names that are none.
std::optional<vt::DType> ParseKvCacheDType(std::string_view name);
// The first name of a type.
std::string_view KvCacheDTypeName(vt::DType dtype);
// All names, with "auto", separated by commas.
std::string KvCacheDTypeNames();
// What "auto" means.
constexpr vt::DType DefaultKvCacheDType(vt::Numerics numerics) {
  return numerics == vt::Numerics::kExact ? vt::DType::kF32 : vt::DType::kBF16;
}

}  // namespace vllm
