// How much memory the KV cache takes, and the context length that follows from it.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "base/memory_info.h"
#include "engine/config.h"
#include "engine/kv/kv_cache_config.h"

namespace vllm {

struct KvMemoryPlan {
  KvCacheConfig config = {};
  int64_t max_model_len = 0;
  std::string notice = {};  // one line for people when a derived context was shrunk; else empty
};

// Without a flag: min(max_num_seqs x context, 40 % of available memory, control-group limit - weights - 512 MB).
// `model_context` is what the model was made for. Throws base::Exception kOutOfMemory with the arithmetic when an
// explicit max_model_len, or any context at all, does not fit.
KvMemoryPlan PlanKvMemory(const EngineConfig& config, std::span<const LayerKvCache> layers, int64_t model_context,
                          int64_t max_num_batched_tokens, uint64_t weight_bytes, const base::MemoryInfo& memory);

}  // namespace vllm
