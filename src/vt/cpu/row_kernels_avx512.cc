// The row kernels compiled for AVX-512.
#include "vt/cpu/vec_avx512.h"
// The body is written over the Vec of the header above.
#include "vt/cpu/row_kernels_body.h"

namespace vt {

const RowKernels kRowKernelsAvx512 = kTable;

}  // namespace vt
