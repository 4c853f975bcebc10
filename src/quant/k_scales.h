// The 12 bytes with eight 6-bit scales and eight 6-bit minima that Q4_K and Q5_K share, and their simple packing.
#pragma once
#include <cstddef>
#include <cstdint>

#include "quant/block.h"

namespace vt {

//   byte  i      (0..3)   SS ssssss   scale i;          top two bits: bits 5..4 of scale i + 4
//   byte  4 + i  (0..3)   MM mmmmmm   minimum i;        top two bits: bits 5..4 of minimum i + 4
//   byte  8 + i  (0..3)   mmmm ssss   low nibbles of minimum i + 4 and scale i + 4
struct KScales {
  uint8_t scale[8] = {};
  uint8_t min[8] = {};
};

inline KScales UnpackKScales(const std::byte* p) {
  KScales out;
  for (int i = 0; i < 4; ++i) {
    const int a = LoadU8(p + i), b = LoadU8(p + 4 + i), c = LoadU8(p + 8 + i);
    out.scale[i] = static_cast<uint8_t>(a & 63);
    out.min[i] = static_cast<uint8_t>(b & 63);
    out.scale[i + 4] = static_cast<uint8_t>((c & 15) | (a >> 6) << 4);
    out.min[i + 4] = static_cast<uint8_t>((c >> 4) | (b >> 6) << 4);
  }
  return out;
}

inline void PackKScales(const KScales& in, std::byte* p) {
  for (int i = 0; i < 4; ++i) {
    Store(p + i, static_cast<uint8_t>(in.scale[i] | (in.scale[i + 4] >> 4) << 6));
    Store(p + 4 + i, static_cast<uint8_t>(in.min[i] | (in.min[i + 4] >> 4) << 6));
    Store(p + 8 + i, static_cast<uint8_t>((in.scale[i + 4] & 15) | (in.min[i + 4] & 15) << 4));
  }
}

// Scales of 8 groups of 32 for weights = d × scale × q − dmin × min with q in 0..levels, from each group's range: no
// search for better ones. Writes d, dmin and the scales to the first 16 bytes of the block, and the q to `q`.
void PackKGroups(const float* x, int levels, std::byte* block, uint8_t* q);

}  // namespace vt
