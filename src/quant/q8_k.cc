// Q8_K: 256 weights of 8 bits with one float scale; weight = d × q. 292 bytes. Meant for activations; the sums are
// redundant and not read here.
//
//   byte  0 … 3    | 4 … 259              | 260 … 291
//         d, float | q0 … q255 (signed)   | 16 sums of 16 q each (int16)
#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {

void DequantizeQ8_K(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 292>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = Load<float>(block);
    for (int i = 0; i < kSuper; ++i) y[i] = d * static_cast<float>(LoadI8(block + 4 + i));
  });
}

}  // namespace vt
