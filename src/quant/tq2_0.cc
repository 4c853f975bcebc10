// TQ2_0: 256 ternary weights of two bits; weight = d × (q − 1). 66 bytes.
//
//   byte  0 … 63                                                             | 64 65
//         bits 2j+1..2j of byte b of half h (32 bytes): weight 128 h + 32 j + b | d, half
#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {

void DequantizeTQ2_0(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 66>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block + 64);
    for (int i = 0; i < kSuper; ++i) {
      const int q = LoadU8(block + 32 * (i / 128) + i % 32) >> (2 * (i % 128 / 32)) & 3;
      y[i] = d * static_cast<float>(q - 1);
    }
  });
}

void QuantizeTQ2_0(const float* in, int64_t count, std::byte* blocks) {
  ForEachBlock<kSuper, 66>(in, count, blocks, [](const float* x, std::byte* block) {
    float d = 0;
    for (int i = 0; i < kSuper; ++i) d = std::fmax(d, std::fabs(x[i]));
    const float inverse = Inverse(d);
    std::memset(block, 0, 64);
    for (int i = 0; i < kSuper; ++i) {
      const int q = RoundClamped(x[i] * inverse, -1, 1) + 1;
      block[32 * (i / 128) + i % 32] |= static_cast<std::byte>(q << (2 * (i % 128 / 32)));
    }
    StoreHalf(block + 64, d);
  });
}

}  // namespace vt
