// The linear kernels for AVX-512 F, BW, DQ and VL (flags.cmake compiles this unit for them).
#include "vt/cpu/simd_avx512.h"
// Order matters: the vocabulary, then what is written in it.
#include "vt/cpu/linear_table.h"

namespace vt {

constinit const LinearKernels kLinearAvx512 = MakeLinearKernels();

}  // namespace vt
