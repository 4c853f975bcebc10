// What a layer keeps in the KV cache. The KV manager owns block ids; the runner owns the bytes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "vt/dtype.h"

namespace vllm {

enum class KvCacheKind : int8_t { kFullAttention, kSlidingWindow };

// One layer's need. Layers of equal spec (all but layer) may share a group.
struct KvCacheSpec {
  KvCacheKind kind = KvCacheKind::kFullAttention;
  int block_size = 0;  // tokens, a multiple of 16
  int kv_heads = 0, head_dim = 0;
  vt::DType dtype = vt::DType::kBF16;
  int window = 0;  // tokens, for kSlidingWindow
  int64_t page_bytes() const { return int64_t{2} * block_size * kv_heads * head_dim * vt::DTypeBytes(dtype); }
  friend bool operator==(const KvCacheSpec&, const KvCacheSpec&) = default;
};

struct LayerKvCache {
  int layer = 0;  // index among the model's attention sublayers, in order
  KvCacheSpec spec = {};
};

}  // namespace vllm
