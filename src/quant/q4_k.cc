// Q4_K: 256 weights of 4 bits in 8 groups of 32; weight = d × scale × q − dmin × min. 144 bytes.
//
//   byte  0  1 | 2  3 | 4 … 15                                 | 16 … 143
//         d    | dmin | 8 scales, 8 minima (quant/k_scales.h)  | 4 × 32 bytes of q
//         half | half |
//
//   Byte b of quarter c (64 weights): low nibble weight 64 c + b, high nibble weight 64 c + 32 + b.
#include <algorithm>

#include "quant/conversions.h"
#include "quant/k_scales.h"

namespace vt {

void DequantizeQ4_K(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 144>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block), dmin = LoadHalf(block + 2);
    const KScales scales = UnpackKScales(block + 4);
    for (int group = 0; group < 8; ++group) {
      const float scale = d * static_cast<float>(scales.scale[group]),
                  min = dmin * static_cast<float>(scales.min[group]);
      for (int i = 0; i < 32; ++i) {
        const int q = LoadU8(block + 16 + 32 * (group / 2) + i) >> (4 * (group % 2)) & 15;
        y[32 * group + i] = scale * static_cast<float>(q) - min;
      }
    }
  });
}

void PackKGroups(const float* x, int levels, std::byte* block, uint8_t* q) {
  float step[8], below[8], largest_step = 0, largest_below = 0;
  for (int group = 0; group < 8; ++group) {
    const auto [lo, hi] = std::minmax_element(x + 32 * group, x + 32 * group + 32);
    below[group] = std::max(0.0f, -*lo);  // a minimum above zero cannot be expressed
    step[group] = (std::max(0.0f, *hi) + below[group]) / static_cast<float>(levels);
    largest_step = std::max(largest_step, step[group]);
    largest_below = std::max(largest_below, below[group]);
  }
  const float d = StoreHalf(block, largest_step / 63.0f), dmin = StoreHalf(block + 2, largest_below / 63.0f);
  KScales scales;
  for (int group = 0; group < 8; ++group) {
    scales.scale[group] = static_cast<uint8_t>(RoundClamped(step[group] * Inverse(d), 0, 63));
    scales.min[group] = static_cast<uint8_t>(RoundClamped(below[group] * Inverse(dmin), 0, 63));
    const float inverse = Inverse(d * static_cast<float>(scales.scale[group]));
    const float min = dmin * static_cast<float>(scales.min[group]);
    for (int i = 32 * group; i < 32 * group + 32; ++i) {
      q[i] = static_cast<uint8_t>(RoundClamped((x[i] + min) * inverse, 0, levels));
    }
  }
  PackKScales(scales, block + 4);
}

void QuantizeQ4_K(const float* in, int64_t count, std::byte* blocks) {
  ForEachBlock<kSuper, 144>(in, count, blocks, [](const float* x, std::byte* block) {
    uint8_t q[kSuper];
    PackKGroups(x, 15, block, q);
    for (int i = 0; i < kSuper / 2; ++i) {
      const int low = 64 * (i / 32) + i % 32;
      Store(block + 16 + i, static_cast<uint8_t>(q[low] | q[low + 32] << 4));
    }
  });
}

}  // namespace vt
