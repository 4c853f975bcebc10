// Where the kernels find the KV cache of one layer.
#include "vt/cpu/kv_places.h"

#include "base/check.h"
#include "vt/kv_page.h"
#include "vt/tensor.h"

namespace vt {
namespace {

KvElement ElementOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return KvElement::kF32;
    case DType::kF16:
      return KvElement::kF16;
    case DType::kBF16:
      return KvElement::kBf16;
    case DType::kF8E4M3:
      return KvElement::kE4m3;
    case DType::kF8E5M2:
      return KvElement::kE5m2;
    case DType::kI8:
      return KvElement::kI8;
    default:
      break;
  }
  CHECK(false, "no kernel for a cache of ", DTypeName(dtype));
  return KvElement::kF32;
}

}  // namespace

KvPlaces KvPlacesOf(const Tensor& cache, const KvPage& page) {
  return {.element = ElementOf(page.dtype),
          .cache = cache.as<uint8_t>(),
          .block_size = page.block_size,
          .page_bytes = page.bytes(),
          .head_bytes = page.head_bytes(),
          .unit_bytes = page.unit_bytes(),
          .value_offset = page.kv_heads * page.head_bytes()};
}

}  // namespace vt
