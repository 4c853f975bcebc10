// IQ2_XXS, IQ2_XS, IQ2_S: eight weights at a time are a row of a grid of magnitudes with separate signs;
// weight = d × (0.5 + scale) × 0.25 × magnitude × sign.
//
//   IQ2_XXS, 66 bytes: d (half), then for each group g of 32 weights eight bytes, two little-endian words a and s:
//     a: four grid rows (8 bits each);  s: bits 31..28 scale, bits 7i+6..7i index of the signs of row i (kSigns7)
//   IQ2_XS, 74 bytes: d (half), 32 words of 16 bits (bits 8..0 grid row, 15..9 index of signs), 8 bytes of scales:
//   nibble n
//     for weights 16 n … 16 n + 15
//   IQ2_S, 82 bytes: d (half), 32 bytes (low 8 bits of the row), 32 bytes of sign bits, 8 bytes: bits 2i+1..2i of byte
//   g are
//     the upper bits of row 4 g + i, 8 bytes of scales as in IQ2_XS
#include "quant/block.h"
#include "quant/conversions.h"
#include "quant/iq_grids.h"

namespace vt {
namespace {

float Scale(float d, uint32_t scale) { return d * (0.5f + static_cast<float>(scale)) * 0.25f; }

uint32_t Nibble(const std::byte* p, int index) { return LoadU8(p + index / 2) >> (4 * (index % 2)) & 15u; }

void WriteRow(float scale, const Grid8Row& row, int signs, float* y) {
  for (int i = 0; i < 8; ++i) {
    y[i] = scale * static_cast<float>(row[static_cast<size_t>(i)]) * (signs >> i & 1 ? -1.0f : 1.0f);
  }
}

}  // namespace

void DequantizeIQ2_XXS(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 66>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block);
    for (int group = 0; group < 8; ++group) {
      const std::byte* rows = block + 2 + 8 * group;
      const uint32_t s = Load<uint32_t>(rows + 4);
      for (int i = 0; i < 4; ++i) {
        const int signs = kSigns7[s >> (7 * i) & 127];
        WriteRow(Scale(d, s >> 28), kIq2XxsGrid[LoadU8(rows + i)], signs, y + 32 * group + 8 * i);
      }
    }
  });
}

void DequantizeIQ2_XS(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 74>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block);
    for (int i = 0; i < 32; ++i) {
      const uint32_t word = Load<uint16_t>(block + 2 + 2 * i);
      WriteRow(Scale(d, Nibble(block + 66, i / 2)), kIq2XsGrid[word & 511], kSigns7[word >> 9], y + 8 * i);
    }
  });
}

void DequantizeIQ2_S(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 82>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block);
    for (int i = 0; i < 32; ++i) {
      const uint32_t upper = LoadU8(block + 66 + i / 4) >> (2 * (i % 4)) & 3u;
      const uint32_t row = LoadU8(block + 2 + i) | upper << 8;
      WriteRow(Scale(d, Nibble(block + 74, i / 2)), kIq2SGrid[row], LoadU8(block + 34 + i), y + 8 * i);
    }
  });
}

}  // namespace vt
