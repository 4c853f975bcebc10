// Q2_K: 256 weights of 2 bits in 16 groups of 16; weight = d × scale × q − dmin × min. 84 bytes.
//
//   byte  0 … 15                  | 16 … 79              | 80 81 | 82 83
//         group g: min_g scale_g  | 2 × 32 bytes of q    | d     | dmin
//         (4 bits, 4 bits)        |                      | half  | half
//
//   Byte b of half h (128 weights) holds four weights: bits 2j+1..2j are weight 128 h + 32 j + b.
#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {

void DequantizeQ2_K(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 84>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block + 80), dmin = LoadHalf(block + 82);
    for (int i = 0; i < kSuper; ++i) {
      const int scale_min = LoadU8(block + i / 16);
      const float scale = d * static_cast<float>(scale_min & 15), min = dmin * static_cast<float>(scale_min >> 4);
      const int half = i / 128, j = i % 128 / 32, b = i % 32;
      const int q = LoadU8(block + 16 + 32 * half + b) >> (2 * j) & 3;
      y[i] = scale * static_cast<float>(q) - min;
    }
  });
}

}  // namespace vt
