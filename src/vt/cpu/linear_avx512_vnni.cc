// The linear kernels for AVX-512 with VNNI (flags.cmake compiles this unit for them).
#include "vt/cpu/simd_avx512.h"
// Order matters: the vocabulary, then what is written in it.
#include "vt/cpu/linear_table.h"

namespace vt {

constinit const LinearKernels kLinearAvx512Vnni = MakeLinearKernels();

}  // namespace vt
