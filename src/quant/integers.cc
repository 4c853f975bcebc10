// I8, I16, I32, I64: two's complement integers, little endian, without a scale.
#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {
namespace {

template <class T>
void Convert(const std::byte* blocks, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(Load<T>(blocks + i * int64_t{sizeof(T)}));
}

}  // namespace

void DequantizeI8(const std::byte* blocks, int64_t count, float* out) { Convert<int8_t>(blocks, count, out); }
void DequantizeI16(const std::byte* blocks, int64_t count, float* out) { Convert<int16_t>(blocks, count, out); }
void DequantizeI32(const std::byte* blocks, int64_t count, float* out) { Convert<int32_t>(blocks, count, out); }
void DequantizeI64(const std::byte* blocks, int64_t count, float* out) { Convert<int64_t>(blocks, count, out); }

}  // namespace vt
