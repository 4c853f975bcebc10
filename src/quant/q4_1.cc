// Q4_1: 32 weights of 4 bits with a scale and a minimum; weight = d × q + m. 20 bytes.
//
//   byte  0  1 | 2  3 | 4          5          …  19
//         d    | m    | q16 q0     q17 q1        q31 q15      (high nibble, low nibble)
//         half | half |
#include <algorithm>

#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {

void DequantizeQ4_1(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<32, 20>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block), m = LoadHalf(block + 2);
    for (int i = 0; i < 16; ++i) {
      const int q = LoadU8(block + 4 + i);
      y[i] = d * static_cast<float>(q & 15) + m;
      y[i + 16] = d * static_cast<float>(q >> 4) + m;
    }
  });
}

void QuantizeQ4_1(const float* in, int64_t count, std::byte* blocks) {
  ForEachBlock<32, 20>(in, count, blocks, [](const float* x, std::byte* block) {
    const auto [lo, hi] = std::minmax_element(x, x + 32);
    const float m = *lo, d = (*hi - m) / 15.0f, inverse = Inverse(d);
    StoreHalf(block, d);
    StoreHalf(block + 2, m);
    for (int i = 0; i < 16; ++i) {
      const int low = TruncateClamped((x[i] - m) * inverse + 0.5f, 15);
      const int high = TruncateClamped((x[i + 16] - m) * inverse + 0.5f, 15);
      Store(block + 4 + i, static_cast<uint8_t>(low | high << 4));
    }
  });
}

}  // namespace vt
