// Q6_K: 256 weights of 6 bits in 16 groups of 16; weight = d × scale × (q − 32). 210 bytes.
//
//   byte  0 … 127               | 128 … 191             | 192 … 207           | 208 209
//         low four bits of q    | upper two bits of q   | 16 signed scales    | d, half
//
//   Low bits: byte b of half h (64 bytes, 128 weights): low nibble weight 128 h + b, high nibble weight 128 h + 64 + b.
//   Upper bits: bits 2j+1..2j of byte b of half h (32 bytes) belong to weight 128 h + 32 j + b.
#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {

void DequantizeQ6_K(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 210>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block + 208);
    for (int i = 0; i < kSuper; ++i) {
      const int half = i / 128, within = i % 128;
      const int low = LoadU8(block + 64 * half + within % 64) >> (4 * (within / 64)) & 15;
      const int high = LoadU8(block + 128 + 32 * half + within % 32) >> (2 * (within / 32)) & 3;
      const float scale = d * static_cast<float>(LoadI8(block + 192 + i / 16));
      y[i] = scale * static_cast<float>((low | high << 4) - 32);
    }
  });
}

// Each group's weight of largest magnitude becomes −32; no search for better scales.
void QuantizeQ6_K(const float* in, int64_t count, std::byte* blocks) {
  ForEachBlock<kSuper, 210>(in, count, blocks, [](const float* x, std::byte* block) {
    float step[16], largest = 0;
    for (int group = 0; group < 16; ++group) {
      float extreme = x[16 * group];
      for (int i = 1; i < 16; ++i) {
        const float value = x[16 * group + i];
        extreme = std::fabs(value) > std::fabs(extreme) ? value : extreme;
      }
      step[group] = extreme / -32.0f;
      largest = std::fabs(step[group]) > std::fabs(largest) ? step[group] : largest;
    }
    const float d = StoreHalf(block + 208, largest / -128.0f);
    std::memset(block, 0, 192);
    for (int i = 0; i < kSuper; ++i) {
      const int group = i / 16, half = i / 128, within = i % 128;
      const int scale = RoundClamped(step[group] * Inverse(d), -128, 127);
      Store(block + 192 + group, static_cast<int8_t>(scale));
      const int q = RoundClamped(x[i] * Inverse(d * static_cast<float>(scale)), -32, 31) + 32;
      block[64 * half + within % 64] |= static_cast<std::byte>((q & 15) << (4 * (within / 64)));
      block[128 + 32 * half + within % 32] |= static_cast<std::byte>((q >> 4) << (2 * (within / 32)));
    }
  });
}

}  // namespace vt
