// Q4_0: 32 weights of 4 bits with one scale; weight = d × (q − 8). 18 bytes.
//
//   byte  0  1 | 2          3          …  17
//         d    | q16 q0     q17 q1        q31 q15      (high nibble, low nibble)
//         half |
#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {

void DequantizeQ4_0(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<32, 18>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block);
    for (int i = 0; i < 16; ++i) {
      const int q = LoadU8(block + 2 + i);
      y[i] = d * static_cast<float>((q & 15) - 8);
      y[i + 16] = d * static_cast<float>((q >> 4) - 8);
    }
  });
}

// The weight of largest magnitude becomes −8 exactly, so the scale carries its sign.
void QuantizeQ4_0(const float* in, int64_t count, std::byte* blocks) {
  ForEachBlock<32, 18>(in, count, blocks, [](const float* x, std::byte* block) {
    float extreme = x[0];
    for (int i = 1; i < 32; ++i) extreme = std::fabs(x[i]) > std::fabs(extreme) ? x[i] : extreme;
    const float d = extreme / -8.0f, inverse = Inverse(d);
    StoreHalf(block, d);
    for (int i = 0; i < 16; ++i) {
      const int low = TruncateClamped(x[i] * inverse + 8.5f, 15);
      const int high = TruncateClamped(x[i + 16] * inverse + 8.5f, 15);
      Store(block + 2 + i, static_cast<uint8_t>(low | high << 4));
    }
  });
}

}  // namespace vt
