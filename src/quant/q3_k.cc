// Q3_K: 256 weights of 3 bits in 16 groups of 16; weight = d × (scale − 32) × (q − 4). 110 bytes.
//
//   byte  0 … 31            | 32 … 95             | 96 … 107        | 108 109
//         third bits of q   | low two bits of q   | 16 scales of 6  | d, half
//
//   Third bits: bit 4h + j of byte b belongs to weight 128 h + 32 j + b. Low bits: bits 2j+1..2j of byte 32 h + b
//   likewise. Scales: byte i (0..7) holds the low nibbles of scales i (low) and i + 8 (high); bits 2j+1..2j of byte 8 +
//   i (0..3) are the upper two bits of scale 4 j + i.
#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {

void DequantizeQ3_K(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 110>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block + 108);
    const std::byte* packed = block + 96;
    float scales[16];
    for (int g = 0; g < 16; ++g) {
      const int low = g < 8 ? LoadU8(packed + g) & 15 : LoadU8(packed + g - 8) >> 4;
      const int high = LoadU8(packed + 8 + g % 4) >> (2 * (g / 4)) & 3;
      scales[g] = d * static_cast<float>((low | high << 4) - 32);
    }
    for (int i = 0; i < kSuper; ++i) {
      const int half = i / 128, j = i % 128 / 32, b = i % 32;
      const int low = LoadU8(block + 32 + 32 * half + b) >> (2 * j) & 3;
      const int third = LoadU8(block + b) >> (4 * half + j) & 1;
      y[i] = scales[i / 16] * static_cast<float>((low | third << 2) - 4);
    }
  });
}

}  // namespace vt
