// TQ1_0: 256 ternary weights, five to a byte; weight = d × t, t in −1, 0, 1. 54 bytes.
//
//   byte  0 … 31                   | 32 … 47                  | 48 … 51                 | 52 53
//         weights 32 n + b, n < 5  | 160 + 16 n + b, n < 5    | 240 + 4 n + b, n < 4    | d, half
//
//   A byte is ceil(v × 256 / 243) for the base-3 number v = Σ (t_n + 1) × 3^(4 − n): multiplied by 3^n modulo 256, the
//   digit n is floor(byte × 3 / 256).
#include <initializer_list>

#include "quant/block.h"
#include "quant/conversions.h"

namespace vt {
namespace {

struct Section {
  int byte, width, digits, first;
};
constexpr Section kSections[] = {{0, 32, 5, 0}, {32, 16, 5, 160}, {48, 4, 4, 240}};
constexpr int kPowers[] = {1, 3, 9, 27, 81};

}  // namespace

void DequantizeTQ1_0(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 54>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block + 52);
    for (const Section& s : kSections) {
      for (int n = 0; n < s.digits; ++n) {
        for (int b = 0; b < s.width; ++b) {
          const int shifted = LoadU8(block + s.byte + b) * kPowers[n] & 255;
          y[s.first + s.width * n + b] = d * static_cast<float>((shifted * 3 >> 8) - 1);
        }
      }
    }
  });
}

void QuantizeTQ1_0(const float* in, int64_t count, std::byte* blocks) {
  ForEachBlock<kSuper, 54>(in, count, blocks, [](const float* x, std::byte* block) {
    float d = 0;
    for (int i = 0; i < kSuper; ++i) d = std::fmax(d, std::fabs(x[i]));
    const float inverse = Inverse(d);
    for (const Section& s : kSections) {
      for (int b = 0; b < s.width; ++b) {
        int v = 0;
        for (int n = 0; n < s.digits; ++n) {
          const int digit = RoundClamped(x[s.first + s.width * n + b] * inverse, -1, 1) + 1;
          v += digit * kPowers[4 - n];
        }
        Store(block + s.byte + b, static_cast<uint8_t>((v * 256 + 242) / 243));
      }
    }
    StoreHalf(block + 52, d);
  });
}

}  // namespace vt
