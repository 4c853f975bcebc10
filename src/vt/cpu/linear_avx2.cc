// The linear kernels for AVX2, FMA and F16C (flags.cmake compiles this unit for them).
#include "vt/cpu/simd_avx2.h"
// Order matters: the vocabulary, then what is written in it.
#include "vt/cpu/linear_formats.h"
#include "vt/cpu/linear_generic.h"
// Again.
#include "vt/cpu/linear_f32.h"

namespace vt {

constinit const LinearKernels kLinearAvx2 = {
    {FewRowsAny<F32>, FewRowsAny<F16>, FewRowsAny<BF16>, FewRowsAny<Q8_0>, FewRowsAny<Q4_0>, FewRowsAny<Q4_1>,
     FewRowsAny<Q5_0>, FewRowsAny<Q4_K>, FewRowsAny<Q6_K>},
    {GemmF32<F32>, GemmF32<F16>, GemmF32<BF16>, GemmF32<Q8_0>, GemmF32<Q4_0>, GemmF32<Q4_1>, GemmF32<Q5_0>,
     GemmF32<Q4_K>, GemmF32<Q6_K>},
    {UnpackRow<F32>, UnpackRow<F16>, UnpackRow<BF16>, UnpackRow<Q8_0>, UnpackRow<Q4_0>, UnpackRow<Q4_1>,
     UnpackRow<Q5_0>, UnpackRow<Q4_K>, UnpackRow<Q6_K>},
};

}  // namespace vt
