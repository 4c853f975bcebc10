// Paged attention's tile compiled for AVX-512 with VNNI.
#include "vt/cpu/vec_avx512.h"
// The body is written over the Vec of the header above.
#include "vt/cpu/paged_attention_body.h"

namespace vt {

const AttentionKernels kAttentionKernelsAvx512Vnni = kTable;

}  // namespace vt
