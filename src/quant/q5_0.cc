// Q5_0: 32 weights of 5 bits with one scale; weight = d × (q − 16). 22 bytes.
//
//   byte  0  1 | 2 … 5                       | 6          7          …  21
//         d    | bit i: the fifth bit of q_i | q16 q0     q17 q1        q31 q15      (low four bits each)
//         half | little endian               |
#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {

void DequantizeQ5_0(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<32, 22>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block);
    const uint32_t fifth = Load<uint32_t>(block + 2);
    for (int i = 0; i < 16; ++i) {
      const int q = LoadU8(block + 6 + i);
      const int low = (q & 15) | static_cast<int>((fifth >> i & 1u) << 4);
      const int high = (q >> 4) | static_cast<int>((fifth >> (i + 16) & 1u) << 4);
      y[i] = d * static_cast<float>(low - 16);
      y[i + 16] = d * static_cast<float>(high - 16);
    }
  });
}

// The weight of largest magnitude becomes −16 exactly, so the scale carries its sign.
void QuantizeQ5_0(const float* in, int64_t count, std::byte* blocks) {
  ForEachBlock<32, 22>(in, count, blocks, [](const float* x, std::byte* block) {
    float extreme = x[0];
    for (int i = 1; i < 32; ++i) extreme = std::fabs(x[i]) > std::fabs(extreme) ? x[i] : extreme;
    const float d = extreme / -16.0f, inverse = Inverse(d);
    StoreHalf(block, d);
    uint32_t fifth = 0;
    for (int i = 0; i < 16; ++i) {
      const int low = TruncateClamped(x[i] * inverse + 16.5f, 31);
      const int high = TruncateClamped(x[i + 16] * inverse + 16.5f, 31);
      fifth |= static_cast<uint32_t>(low >> 4) << i | static_cast<uint32_t>(high >> 4) << (i + 16);
      Store(block + 6 + i, static_cast<uint8_t>((low & 15) | (high & 15) << 4));
    }
    Store(block + 2, fifth);
  });
}

}  // namespace vt
