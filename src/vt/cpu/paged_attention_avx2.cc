// Paged attention's tile compiled for AVX2.
#include "vt/cpu/vec_avx2.h"
// The body is written over the Vec of the header above.
#include "vt/cpu/paged_attention_body.h"

namespace vt {

const AttentionKernels kAttentionKernelsAvx2 = kTable;

}  // namespace vt
