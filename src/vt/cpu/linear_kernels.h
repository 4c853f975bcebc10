// What the per-instruction-set units of the linear op export: plain tables of functions. Only plain types, because
// those units are compiled for wider machines and must not emit inline functions that others share.
#pragma once
#include <cstdint>

#include "vt/cpu/r16.h"

namespace vt {

// Rows of x are padded with zeros to whole steps of this many elements.
inline constexpr int64_t kLinearStep = 32;
inline constexpr int64_t PaddedK(int64_t k) { return (k + kLinearStep - 1) / kLinearStep * kLinearStep; }

// Forms of rounded x, each kernel reads one.
enum XForm : int {
  kXWords,   // 16 bits, |q| <= kLargestQ, the middle two of every four swapped: 16-bit lanes of even and of odd bytes
             // of weights meet them
  kXPlanes,  // the same q as two planes of bytes, q = 256 * first + second
  kXBytes,   // 8 bits, |q| <= 127, one plane of bytes
  kXForms,
};

// Rows of x rounded to integers with a scale for every 32: x = scale * q.
struct QuantizedRows {
  int16_t* q = nullptr;      // [rows, stride]; kXBytes: the first half of each row
  float* scale = nullptr;    // [rows, stride / 32]
  int32_t* sum32 = nullptr;  // [rows, stride / 32]: minus the sums of q over 32
  int32_t* sum16 = nullptr;  // [rows, stride / 16]: and over 16
  float* min32 = nullptr;    // [rows, stride / 32]: scale * sum of q over 32
  float* min16 = nullptr;    // [rows, stride / 16]
  int64_t stride = 0;        // PaddedK of k
};
inline constexpr float kLargestQ = 32639;  // 256 * 127 + 127
// Memory is there for so many rows at least.
inline constexpr int64_t kQuantizedRows = 8;
// Bytes of memory for `rows` of them.
inline constexpr int64_t QuantizedBytes(int64_t rows, int64_t k) {
  return (rows < kQuantizedRows ? kQuantizedRows : rows) * PaddedK(k) / 32 * (64 + 3 * 4 + 4 * 4);
}

// y[r * y_stride + i] = x row r . weight row i (+ bias[i]), r < rows, i < columns. A result's bits depend on its row of
// x and of the weight only, not on the other rows, the kernel, or the workers.
struct LinearPart {
  int64_t rows = 0, k = 0;
  const float* x = nullptr;                 // [rows, PaddedK(k)]: float kernels
  QuantizedRows quantized;                  // integer kernels, in their form
  const uint16_t* x_bf16 = nullptr;         // [rows, PaddedK(k)]: BF16 kernel
  const uint16_t* x_tiles = nullptr;        // [rows / kTileRows, PaddedK(k) / 32, kTileRows, 32]: AMX kernels
  const unsigned char* groups = nullptr;    // R16, 64-byte aligned
  int64_t group_bytes = 0, head_bytes = 0;  // R16Shape
  int64_t columns = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  const float* bias = nullptr;     // or null
  unsigned char* panel = nullptr;  // GEMMs: PanelBytes or kAmxPanelBytes of scratch, 64-byte aligned

  // Makes the part begin `count` rows of x later: whole tiles, for AMX kernels.
  void SkipRows(int64_t count) {
    const int64_t padded = PaddedK(k), stride = quantized.stride;
    if (x != nullptr) x += count * padded;
    if (x_bf16 != nullptr) x_bf16 += count * padded;
    if (x_tiles != nullptr) x_tiles += count * padded;
    if (quantized.q == nullptr) return;
    quantized.q += count * stride;
    quantized.scale += count * (stride / 32), quantized.sum32 += count * (stride / 32);
    quantized.min32 += count * (stride / 32);
    quantized.sum16 += count * (stride / 16), quantized.min16 += count * (stride / 16);
  }
};

// So many rows of x are multiplied with float weights straight from their bits.
inline constexpr int kFewFloatRows = 4;

struct LinearKernels {
  using Run = void (*)(const LinearPart& part);
  // Rounds rows [begin, end) of x [rows, k]; a row with a number that is not finite gives only such sums.
  using Quantize = void (*)(const float* x, int64_t k, int64_t begin, int64_t end, const QuantizedRows& out);

  // Of formats of integers; null for float formats. The two give the same bits, on every instruction set.
  struct Kernel {
    Run run = nullptr;
    XForm x = kXWords;
  };
  struct Integer {
    Kernel few[kCpuFormats] = {};   // rows <= few_rows; may read rows beyond of the quantized x, whatever they hold
    Kernel gemm[kCpuFormats] = {};  // any rows
  };
  int few_rows = 0;
  Integer int16;  // x rounded to 16 bits
  Integer int8;   // to 8 bits, but for formats whose products of bytes the set cannot add up: those stay at 16
  Quantize quantize[kXForms] = {};
  // Products and sums in f32 of the dequantized weights.
  Run exact[kCpuFormats] = {};
  // Exactly k values of a row of a group.
  void (*unpack_row[kCpuFormats])(const unsigned char* group, int64_t head_bytes, int row, int64_t k, float* out) = {};
};

// Of BF16 weights: activations rounded to BF16, sums in f32.
struct LinearBf16Kernels {
  LinearKernels::Run gemm;
  void (*round)(const float* in, int64_t count, uint16_t* out);  // writes PaddedK(count) values
};

// Of integer and BF16 weights on AMX: activations and weights rounded to BF16, sums in f32. Null for other formats.
struct LinearAmxKernels {
  LinearKernels::Run gemm[kCpuFormats];
  // Rounds k values of x into row `row` of its tiles. Rows of the last tile that x does not have may hold anything.
  void (*pack_row)(const float* x, int64_t k, int64_t row, uint16_t* tiles);
};
inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t TilesBytes(int64_t rows, int64_t k) {
  return (rows + kTileRows - 1) / kTileRows * kTileRows * PaddedK(k) * 2;
}
// Two chunks of 128 columns by 512 of k, and the sums of 512 rows of those columns.
inline constexpr int64_t kAmxPanelBytes = 2 * 128 * 512 * 2 + 512 * 128 * 4;

// Columns of a GEMM's panel. Over a chunk of rows an integer panel is half a megabyte.
inline constexpr int64_t kPanelColumns = 32, kPanelRows = 8192;
inline constexpr int64_t PanelBytes(int64_t k) {
  const int64_t chunk = PaddedK(k) < kPanelRows ? PaddedK(k) : kPanelRows;
  return kPanelColumns * (chunk * 2 + chunk / 16 * 4 * 2);
}

extern const LinearKernels kLinearAvx2;
extern const LinearKernels kLinearAvxVnni;
extern const LinearKernels kLinearAvx512;
extern const LinearKernels kLinearAvx512Vnni;
extern const LinearBf16Kernels kLinearBf16;
extern const LinearAmxKernels kLinearAmx;

}  // namespace vt
