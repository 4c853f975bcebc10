// What the per-instruction-set units of the linear op export: plain tables of functions. Only plain types, because
// those units are compiled for wider machines and must not emit inline functions that others share.
#pragma once
#include <cstdint>

namespace vt {

// Formats with fast kernels, an index into the tables.
enum CpuFormat : int {
  kCpuF32,
  kCpuF16,
  kCpuBF16,
  kCpuQ8_0,
  kCpuQ4_0,
  kCpuQ4_1,
  kCpuQ5_0,
  kCpuQ4_K,
  kCpuQ6_K,
  kCpuFormats,
};

// Kernels read x and panels in whole steps of this many elements; rows are zero-padded up to it.
inline constexpr int64_t kLinearStep = 32;
// At most this many rows of x go through the few-row kernels.
inline constexpr int64_t kFewRows = 8;

// y[r * y_stride + i] = x row r . weight row i (+ bias[i]), r < rows, i < columns. Sums run over blocks of k of a
// length that depends on k only, in lanes of a vector, each lane in order: so a result's bits depend on its row of x
// and of the weight, and on nothing else.
struct LinearPart {
  const float* x = nullptr;  // [rows, x_stride]
  int64_t rows = 0, x_stride = 0, k = 0;
  const unsigned char* weight = nullptr;  // any alignment
  int64_t row_bytes = 0, columns = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  const float* bias = nullptr;       // or null
  float* panel = nullptr;            // GEMM: PanelBytes of scratch, 64-byte aligned
  const uint16_t* x_bf16 = nullptr;  // BF16 GEMM: x rounded, [rows, x_stride], zero-padded
};

struct LinearKernels {
  using Run = void (*)(const LinearPart& part);
  Run few_rows[kCpuFormats];  // rows <= kFewRows
  Run gemm_f32[kCpuFormats];  // any rows; the same bits as few_rows
  void (*unpack_row[kCpuFormats])(const unsigned char* row, int64_t k, float* out);  // exactly k values
};

// Weights and activations rounded to BF16, sums in f32 lanes over all of k.
struct LinearBf16Kernels {
  LinearKernels::Run gemm[kCpuFormats];
  void (*round)(const float* in, int64_t count, uint16_t* out);  // writes PaddedK(count) values
};

// Columns of a GEMM panel: a part has at most this many. With rows of 2048 an f32 panel is 256 KiB, a quarter of the L2
// cache.
inline constexpr int64_t kPanelColumns = 32;
inline constexpr int64_t PaddedK(int64_t k) { return (k + kLinearStep - 1) / kLinearStep * kLinearStep; }
inline constexpr int64_t PanelBytes(int64_t k) { return kPanelColumns * PaddedK(k) * 4; }

// Length of the sum blocks: short enough that six rows of x and four of the panel stay in the L1 cache, a multiple of
// 256 (the K-quants' block). Rows a little longer than a block are one block, as the tail would cost as much as a whole
// one.
inline constexpr int64_t SumBlock(int64_t k) { return k <= 1024 ? PaddedK(k) : 768; }

extern const LinearKernels kLinearAvx2;
extern const LinearKernels kLinearAvx512;
extern const LinearBf16Kernels kLinearBf16;

}  // namespace vt
