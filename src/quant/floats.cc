// F32, F16, BF16, F64: one number an element.
//
//   F32   s eeeeeeee mmmmmmmmmmmmmmmmmmmmmmm     F16   s eeeee mmmmmmmmmm
//   BF16  s eeeeeeee mmmmmmm                     F64   s eeeeeeeeeee m×52
#include <cstring>

#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {

void DequantizeF32(const std::byte* blocks, int64_t count, float* out) {
  if (count > 0) std::memcpy(out, blocks, static_cast<size_t>(count) * sizeof(float));
}

void QuantizeF32(const float* in, int64_t count, std::byte* blocks) {
  if (count > 0) std::memcpy(blocks, in, static_cast<size_t>(count) * sizeof(float));
}

void DequantizeF16(const std::byte* blocks, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = LoadHalf(blocks + 2 * i);
}

void QuantizeF16(const float* in, int64_t count, std::byte* blocks) {
  for (int64_t i = 0; i < count; ++i) Store(blocks + 2 * i, HalfFromFloat(in[i]));
}

void DequantizeBF16(const std::byte* blocks, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = FloatFromBf16(Load<uint16_t>(blocks + 2 * i));
}

void QuantizeBF16(const float* in, int64_t count, std::byte* blocks) {
  for (int64_t i = 0; i < count; ++i) Store(blocks + 2 * i, Bf16FromFloat(in[i]));
}

// Rounds to nearest even; what lies beyond float becomes infinity.
void DequantizeF64(const std::byte* blocks, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(Load<double>(blocks + 8 * i));
}

}  // namespace vt
