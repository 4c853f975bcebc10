// Q5_K: 256 weights of 5 bits in 8 groups of 32; weight = d × scale × q − dmin × min. 176 bytes.
//
//   byte  0  1 | 2  3 | 4 … 15                                 | 16 … 47           | 48 … 175
//         d    | dmin | 8 scales, 8 minima (quant/k_scales.h)  | fifth bits of q   | low four bits of q, as in Q4_K
//         half | half |
//
//   Bit g of byte 16 + b is the fifth bit of weight 32 g + b.
#include "quant/conversions.h"
#include "quant/k_scales.h"

namespace vt {

void DequantizeQ5_K(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 176>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block), dmin = LoadHalf(block + 2);
    const KScales scales = UnpackKScales(block + 4);
    for (int group = 0; group < 8; ++group) {
      const float scale = d * static_cast<float>(scales.scale[group]),
                  min = dmin * static_cast<float>(scales.min[group]);
      for (int i = 0; i < 32; ++i) {
        const int low = LoadU8(block + 48 + 32 * (group / 2) + i) >> (4 * (group % 2)) & 15;
        const int fifth = LoadU8(block + 16 + i) >> group & 1;
        y[32 * group + i] = scale * static_cast<float>(low | fifth << 4) - min;
      }
    }
  });
}

void QuantizeQ5_K(const float* in, int64_t count, std::byte* blocks) {
  ForEachBlock<kSuper, 176>(in, count, blocks, [](const float* x, std::byte* block) {
    uint8_t q[kSuper];
    PackKGroups(x, 31, block, q);
    for (int b = 0; b < 32; ++b) {
      int fifth = 0;
      for (int group = 0; group < 8; ++group) fifth |= (q[32 * group + b] >> 4) << group;
      Store(block + 16 + b, static_cast<uint8_t>(fifth));
    }
    for (int i = 0; i < kSuper / 2; ++i) {
      const int low = 64 * (i / 32) + i % 32;
      Store(block + 48 + i, static_cast<uint8_t>((q[low] & 15) | (q[low + 32] & 15) << 4));
    }
  });
}

}  // namespace vt
