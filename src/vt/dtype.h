// Element types of tensors. Block formats of weights are not tensors; see quant/format.h and vt/weight.h.
#pragma once
#include <cstdint>
#include <string_view>

namespace vt {

enum class DType : int8_t { kF32, kF16, kBF16, kI32, kI64, kU8, kI8, kF8E4M3, kF8E5M2 };

constexpr int64_t DTypeBytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kI64:
      return 8;
    case DType::kU8:
    case DType::kI8:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return 1;
  }
  return 0;
}

std::string_view DTypeName(DType dtype);

}  // namespace vt
