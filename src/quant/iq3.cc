// IQ3_XXS and IQ3_S: four weights at a time are a row of a grid of magnitudes with separate signs.
//
//   IQ3_XXS, 98 bytes; weight = d × (0.5 + scale) × 0.5 × magnitude × sign:
//     d (half), 64 bytes of grid rows (4 weights each), then per group of 32 weights a little-endian word:
//     bits 31..28 scale, bits 7i+6..7i index of the signs of eight weights (kSigns7)
//   IQ3_S, 110 bytes; weight = d × (1 + 2 scale) × magnitude × sign:
//     d (half), 64 bytes (low 8 bits of the row), 8 bytes (bit i of byte g: ninth bit of row 8 g + i), 32 bytes of sign
//     bits, 4 bytes of scales: nibble g for group g of 32 weights
#include "quant/block.h"
#include "quant/conversions.h"
#include "quant/iq_grids.h"

namespace vt {
namespace {

// `signs`: bit i for weight i of this row.
void WriteRow(float scale, const Grid4Row& row, int signs, float* y) {
  for (int i = 0; i < 4; ++i) {
    y[i] = scale * static_cast<float>(row[static_cast<size_t>(i)]) * (signs >> i & 1 ? -1.0f : 1.0f);
  }
}

}  // namespace

void DequantizeIQ3_XXS(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 98>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block);
    for (int i = 0; i < 64; ++i) {
      const uint32_t s = Load<uint32_t>(block + 66 + 4 * (i / 8));
      const float scale = d * (0.5f + static_cast<float>(s >> 28)) * 0.5f;
      const int signs = kSigns7[s >> (7 * (i % 8 / 2)) & 127];
      WriteRow(scale, kIq3XxsGrid[LoadU8(block + 2 + i)], signs >> (4 * (i % 2)), y + 4 * i);
    }
  });
}

void DequantizeIQ3_S(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 110>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block);
    for (int i = 0; i < 64; ++i) {
      const int group = i / 8;
      const int nibble = LoadU8(block + 106 + group / 2) >> (4 * (group % 2)) & 15;
      const float scale = d * static_cast<float>(1 + 2 * nibble);
      const uint32_t ninth = LoadU8(block + 66 + group) >> (i % 8) & 1u;
      const int signs = LoadU8(block + 74 + i / 2) >> (4 * (i % 2));
      WriteRow(scale, kIq3SGrid[LoadU8(block + 2 + i) | ninth << 8], signs, y + 4 * i);
    }
  });
}

}  // namespace vt
