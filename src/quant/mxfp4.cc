// MXFP4: 32 weights of 4-bit floats (E2M1) with a power-of-two scale (E8M0), the OCP microscaling format; weight =
// scale × value. 17 bytes.
//
//   byte  0                  | 1          2          …  16
//         e: scale 2^(e−127) | q16 q0     q17 q1        q31 q15      (high nibble, low nibble)
//
//   Nibble s mmm: 0 0.5 1 1.5 2 3 4 6 and their negatives. Values are kept doubled and the scale halved, all exact.
#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {
namespace {

constexpr int8_t kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// 2^(e − 128), a subnormal for e below 2.
float HalfScale(int e) {
  const uint32_t bits = e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23;
  return std::bit_cast<float>(bits);
}

int NearestValue(float x, float scale) {
  int best = 0;
  float least = std::fabs(scale * static_cast<float>(kDoubled[0]) - x);
  for (int i = 1; i < 16; ++i) {
    const float error = std::fabs(scale * static_cast<float>(kDoubled[i]) - x);
    if (error < least) {
      least = error;
      best = i;
    }
  }
  return best;
}

}  // namespace

void DequantizeMXFP4(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<32, 17>(blocks, count, out, [](const std::byte* block, float* y) {
    const float scale = HalfScale(LoadU8(block));
    for (int i = 0; i < 16; ++i) {
      const int q = LoadU8(block + 1 + i);
      y[i] = scale * static_cast<float>(kDoubled[q & 15]);
      y[i + 16] = scale * static_cast<float>(kDoubled[q >> 4]);
    }
  });
}

// The largest weight lands in the binade of 4 and 6, the format's top.
void QuantizeMXFP4(const float* in, int64_t count, std::byte* blocks) {
  ForEachBlock<32, 17>(in, count, blocks, [](const float* x, std::byte* block) {
    float largest = 0;
    for (int i = 0; i < 32; ++i) largest = std::fmax(largest, std::fabs(x[i]));
    const bool usable = largest > 0 && std::isfinite(largest);
    const int e = usable ? Clamp(static_cast<int>(std::floor(std::log2(largest))) - 2 + 127, 0, 255) : 0;
    Store(block, static_cast<uint8_t>(e));
    for (int i = 0; i < 16; ++i) {
      const int low = NearestValue(x[i], HalfScale(e)), high = NearestValue(x[i + 16], HalfScale(e));
      Store(block + 1 + i, static_cast<uint8_t>(low | high << 4));
    }
  });
}

}  // namespace vt
