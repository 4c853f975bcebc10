// Q8_1: Q8_0 with the sum of its weights beside the scale; weight = q × d. 36 bytes. Meant for activations; the sum is
// redundant and not read here.
//
//   byte  0  1 | 2  3         | 4   5   …  35
//         d    | s = d × Σq   | q0  q1     q31      (signed)
//         half | half         |
#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {

void DequantizeQ8_1(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<32, 36>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block);
    for (int i = 0; i < 32; ++i) y[i] = static_cast<float>(LoadI8(block + 4 + i)) * d;
  });
}

}  // namespace vt
