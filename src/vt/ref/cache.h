// Elements of the KV cache: bf16 or f32, [blocks, 2, block_size, kv_heads, head_dim].
#pragma once
#include <cstdint>

#include "quant/half.h"
#include "vt/tensor.h"

namespace vt {

// Element index of the first of head_dim values of a slot (block * block_size + offset); kind 0 is K, 1 is V.
inline int64_t CacheIndex(const Tensor& cache, int64_t slot, int kind, int64_t kv_head) {
  const int64_t block_size = cache.shape[2];
  return (slot / block_size) * cache.stride[0] + kind * cache.stride[1] + (slot % block_size) * cache.stride[2] +
         kv_head * cache.stride[3];
}

inline float LoadCache(const Tensor& cache, int64_t index) {
  return cache.dtype == DType::kBF16 ? FloatFromBf16(cache.as<uint16_t>()[index]) : cache.as<float>()[index];
}

inline void StoreCache(const Tensor& cache, int64_t index, float value) {
  if (cache.dtype == DType::kBF16)
    cache.as<uint16_t>()[index] = Bf16FromFloat(value);
  else
    cache.as<float>()[index] = value;
}

}  // namespace vt
