// Q5_1: 32 weights of 5 bits with a scale and a minimum; weight = d × q + m. 24 bytes.
//
//   byte  0  1 | 2  3 | 4 … 7                       | 8          9          …  23
//         d    | m    | bit i: the fifth bit of q_i | q16 q0     q17 q1        q31 q15      (low four bits each)
//         half | half | little endian               |
#include <algorithm>

#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {

void DequantizeQ5_1(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<32, 24>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block), m = LoadHalf(block + 2);
    const uint32_t fifth = Load<uint32_t>(block + 4);
    for (int i = 0; i < 16; ++i) {
      const int q = LoadU8(block + 8 + i);
      const int low = (q & 15) | static_cast<int>((fifth >> i & 1u) << 4);
      const int high = (q >> 4) | static_cast<int>((fifth >> (i + 16) & 1u) << 4);
      y[i] = d * static_cast<float>(low) + m;
      y[i + 16] = d * static_cast<float>(high) + m;
    }
  });
}

void QuantizeQ5_1(const float* in, int64_t count, std::byte* blocks) {
  ForEachBlock<32, 24>(in, count, blocks, [](const float* x, std::byte* block) {
    const auto [lo, hi] = std::minmax_element(x, x + 32);
    const float m = *lo, d = (*hi - m) / 31.0f, inverse = Inverse(d);
    StoreHalf(block, d);
    StoreHalf(block + 2, m);
    uint32_t fifth = 0;
    for (int i = 0; i < 16; ++i) {
      const int low = TruncateClamped((x[i] - m) * inverse + 0.5f, 31);
      const int high = TruncateClamped((x[i + 16] - m) * inverse + 0.5f, 31);
      fifth |= static_cast<uint32_t>(low >> 4) << i | static_cast<uint32_t>(high >> 4) << (i + 16);
      Store(block + 8 + i, static_cast<uint8_t>((low & 15) | (high & 15) << 4));
    }
    Store(block + 4, fifth);
  });
}

}  // namespace vt
