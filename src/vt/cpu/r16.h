// R16, the layout of weights that the cpu provider multiplies with: sixteen rows side by side, one lane of a vector for
// each. Only plain types: the units of the instruction sets include this.
//
//   matrix   groups of 16 rows, the last one filled up with rows of zeros
//   group    heads of all blocks, a gap up to 64 bytes, payloads of all blocks
//   head     the block's scales: each field of 4 bytes, then each of 2 bytes, 16 rows next to each other
//   payload  the block's bits as dwords, 16 rows next to each other: 64 bytes hold one dword of each row
//
// A head and a payload hold the file's bits and no more, but in two formats in another order: Q8_0's bytes have their
// sign bit flipped (value + 128), and bit 8 b + s of Q5_0's and Q5_1's dword of fifth bits is that of weight 4 s + b.
// Float formats are blocks of 32 weights without a head, rows zero-padded to whole blocks: F32 and BF16 as dwords, F16
// as halfwords.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vt {

inline constexpr int kR16Rows = 16;

// Formats with fast kernels, an index into the kernels' tables.
enum CpuFormat : int {
  kCpuF32,
  kCpuF16,
  kCpuBF16,
  kCpuQ8_0,
  kCpuQ4_0,
  kCpuQ4_1,
  kCpuQ5_0,
  kCpuQ5_1,
  kCpuQ2_K,
  kCpuQ3_K,
  kCpuQ4_K,
  kCpuQ5_K,
  kCpuQ6_K,
  kCpuIQ4_NL,
  kCpuIQ4_XS,
  kCpuFormats,
};

// Bytes of one row in a block.
struct R16Block {
  int weights = 0;
  int head = 0, payload = 0;
};
R16Block R16BlockOf(CpuFormat format);

struct R16Shape {
  int64_t blocks = 0;       // of a row
  int64_t head_bytes = 0;   // of a group, with the gap
  int64_t group_bytes = 0;  // a multiple of 64
};
R16Shape R16ShapeOf(CpuFormat format, int64_t k);

// Packs `count` <= 16 rows of k weights, row_bytes apart at any alignment, into one group.
void PackR16Group(CpuFormat format, const std::byte* rows, int64_t row_bytes, int count, int64_t k, std::byte* group);

}  // namespace vt
