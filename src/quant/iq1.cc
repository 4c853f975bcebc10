// IQ1_S and IQ1_M: eight weights at a time are a row of a ternary grid, moved by ±1/8;
// weight = d × (2 scale + 1) × (grid ± 0.125).
//
//   IQ1_S, 50 bytes: d (half), 32 bytes (low 8 bits of the row), 8 words of 16 bits, one a group of 32 weights:
//     bit 15 sign of the shift, bits 14..12 scale, bits 3i+2..3i upper bits of row i
//   IQ1_M, 56 bytes: 32 bytes (low 8 bits of the row), 16 bytes (nibble i: bit 3 sign of the shift, bits 2..0 upper
//   bits of
//     row i), 4 words of 16 bits: bits 11..0 four scales of 3 bits (16 weights each), bits 15..12 of word i are nibble
//     i of d
#include "quant/block.h"
#include "quant/conversions.h"
#include "quant/iq_grids.h"

namespace vt {
namespace {

void WriteRow(float scale, const Grid8Row& row, bool down, float* y) {
  const float shift = down ? -0.125f : 0.125f;
  for (int i = 0; i < 8; ++i) y[i] = scale * (static_cast<float>(row[static_cast<size_t>(i)]) + shift);
}

}  // namespace

void DequantizeIQ1_S(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 50>(blocks, count, out, [](const std::byte* block, float* y) {
    const float d = LoadHalf(block);
    for (int i = 0; i < 32; ++i) {
      const uint32_t word = Load<uint16_t>(block + 34 + 2 * (i / 4));
      const float scale = d * static_cast<float>(2 * (word >> 12 & 7) + 1);
      const uint32_t upper = word >> (3 * (i % 4)) & 7;
      WriteRow(scale, kIq1Grid[LoadU8(block + 2 + i) | upper << 8], (word & 0x8000) != 0, y + 8 * i);
    }
  });
}

void DequantizeIQ1_M(const std::byte* blocks, int64_t count, float* out) {
  ForEachBlock<kSuper, 56>(blocks, count, out, [](const std::byte* block, float* y) {
    uint32_t half = 0;
    for (int i = 0; i < 4; ++i) half |= static_cast<uint32_t>(Load<uint16_t>(block + 48 + 2 * i) >> 12) << (4 * i);
    const float d = FloatFromHalf(static_cast<uint16_t>(half));
    for (int i = 0; i < 32; ++i) {
      const int group = i / 2;  // of 16 weights
      const uint32_t word = Load<uint16_t>(block + 48 + 2 * (group / 4));
      const float scale = d * static_cast<float>(2 * (word >> (3 * (group % 4)) & 7) + 1);
      const uint32_t nibble = LoadU8(block + 32 + i / 2) >> (4 * (i % 2)) & 15u;
      WriteRow(scale, kIq1Grid[LoadU8(block + i) | (nibble & 7) << 8], (nibble & 8) != 0, y + 8 * i);
    }
  });
}

}  // namespace vt
