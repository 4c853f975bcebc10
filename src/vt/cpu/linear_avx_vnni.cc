// The linear kernels for AVX2 with AVX-VNNI (flags.cmake compiles this unit for them).
#include "vt/cpu/simd_avx2.h"
// Order matters: the vocabulary, then what is written in it.
#include "vt/cpu/linear_table.h"

namespace vt {

constinit const LinearKernels kLinearAvxVnni = MakeLinearKernels();

}  // namespace vt
