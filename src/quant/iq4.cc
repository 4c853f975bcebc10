// IQ4_NL and IQ4_XS: 4-bit indices into a fixed table of 16 levels; weight = d × level, or d × (scale − 32) × level.
//
//   IQ4_NL, 32 weights, 18 bytes: as Q4_0, with the table in place of q − 8.
//   IQ4_XS, 256 weights in 8 groups of 32, 136 bytes:
//   byte  0  1 | 2  3                               | 4 … 7                              | 8 … 135
//         d    | bits 2g+1..2g: upper bits, scale g | nibble g: low four bits of scale g | 8 × 16 bytes of q
//         half |                                    |                                    |
//   Byte b of group g: low nibble weight 32 g + b, high nibble weight 32 g + 16 + b.
#include "quant/block.h"
#include "quant/conversions.h"
#include "quant/iq_grids.h"

namespace vt {

void DequantizeIQ4_NL(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<32, 18>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block);
    for (int i = 0; i < 16; ++i) {
      const int q = LoadU8(block + 2 + i);
      y[i] = d * static_cast<float>(kIq4Levels[q & 15]);
      y[i + 16] = d * static_cast<float>(kIq4Levels[q >> 4]);
    }
  });
}

void DequantizeIQ4_XS(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 136>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block);
    const int upper = Load<uint16_t>(block + 2);
    for (int group = 0; group < 8; ++group) {
      const int low = LoadU8(block + 4 + group / 2) >> (4 * (group % 2)) & 15;
      const float scale = d * static_cast<float>((low | (upper >> (2 * group) & 3) << 4) - 32);
      for (int i = 0; i < 16; ++i) {
        const int q = LoadU8(block + 8 + 16 * group + i);
        y[32 * group + i] = scale * static_cast<float>(kIq4Levels[q & 15]);
        y[32 * group + i + 16] = scale * static_cast<float>(kIq4Levels[q >> 4]);
      }
    }
  });
}

}  // namespace vt
