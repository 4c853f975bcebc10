// Q8_0: 32 weights of 8 bits with one scale; weight = q × d. 34 bytes.
//
//   byte  0  1 | 2   3   …  33
//         d    | q0  q1     q31      (signed)
//         half |
#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {

void DequantizeQ8_0(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<32, 34>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block);
    for (int i = 0; i < 32; ++i) y[i] = static_cast<float>(LoadI8(block + 2 + i)) * d;
  });
}

void QuantizeQ8_0(const float* in, int64_t count, std::byte* blocks) {
  ForEachBlock<32, 34>(in, count, blocks, [](const float* x, std::byte* block) {
    float largest = 0;
    for (int i = 0; i < 32; ++i) largest = std::fmax(largest, std::fabs(x[i]));
    const float d = largest / 127.0f, inverse = Inverse(d);
    StoreHalf(block, d);
    for (int i = 0; i < 32; ++i) Store(block + 2 + i, static_cast<int8_t>(RoundClamped(x[i] * inverse, -127, 127)));
  });
}

}  // namespace vt
