// Where the kernels find the KV cache of one layer: KvPage as plain numbers, so that their units see no library code.
#pragma once
#include <cstdint>

namespace vt {

struct KvPage;
struct Tensor;

enum class KvElement : int8_t { kF32, kF16, kBf16, kE4m3, kE5m2, kI8 };

// Offsets are in bytes; see KvPage for what lies where.
struct KvPlaces {
  KvElement element = KvElement::kF32;
  uint8_t* cache = nullptr;
  int64_t block_size = 0;
  int64_t page_bytes = 0, head_bytes = 0, unit_bytes = 0;
  int64_t value_offset = 0;  // from a head's keys to its values
};

KvPlaces KvPlacesOf(const Tensor& cache, const KvPage& page);

}  // namespace vt
