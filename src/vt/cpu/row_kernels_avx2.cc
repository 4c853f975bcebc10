// The row kernels compiled for AVX2.
#include "vt/cpu/vec_avx2.h"
// The body is written over the Vec of the header above.
#include "vt/cpu/row_kernels_body.h"

namespace vt {

const RowKernels kRowKernelsAvx2 = kTable;

}  // namespace vt
