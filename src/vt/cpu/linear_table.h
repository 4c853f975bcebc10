// The table of linear kernels that the unit of each instruction set exports. Included after simd_*.h.
#pragma once
#include "vt/cpu/linear_formats.h"
// Order matters: the formats, what is written in them.
#include "vt/cpu/linear_columns.h"
// Again.
#include "vt/cpu/linear_f32.h"
#include "vt/cpu/linear_int.h"

// The table of a unit: integer formats by their own kernels.
#define VT_LINEAR_KERNELS                                                                                             \
  {                                                                                                                   \
      kFewRows,                                                                                                       \
      {nullptr, nullptr, nullptr, Few<Q8_0>, Few<Q4_0>, Few<Q4_1>, Few<Q5_0>, Few<Q5_1>, Few<Q2_K>, Few<Q3_K>,        \
       Few<Q4_K>, Few<Q5_K>, Few<Q6_K>, Few<IQ4_NL>, Few<IQ4_XS>},                                                    \
      {nullptr, nullptr, nullptr, Gemm<Q8_0>, Gemm<Q4_0>, Gemm<Q4_1>, Gemm<Q5_0>, Gemm<Q5_1>, Gemm<Q2_K>, Gemm<Q3_K>, \
       Gemm<Q4_K>, Gemm<Q5_K>, Gemm<Q6_K>, Gemm<IQ4_NL>, Gemm<IQ4_XS>},                                               \
      {Exact<F32>, Exact<F16>, Exact<BF16>, Exact<Q8_0>, Exact<Q4_0>, Exact<Q4_1>, Exact<Q5_0>, Exact<Q5_1>,          \
       Exact<Q2_K>, Exact<Q3_K>, Exact<Q4_K>, Exact<Q5_K>, Exact<Q6_K>, Exact<IQ4_NL>, Exact<IQ4_XS>},                \
      {UnpackRow<F32>, UnpackRow<F16>, UnpackRow<BF16>, UnpackRow<Q8_0>, UnpackRow<Q4_0>, UnpackRow<Q4_1>,            \
       UnpackRow<Q5_0>, UnpackRow<Q5_1>, UnpackRow<Q2_K>, UnpackRow<Q3_K>, UnpackRow<Q4_K>, UnpackRow<Q5_K>,          \
       UnpackRow<Q6_K>, UnpackRow<IQ4_NL>, UnpackRow<IQ4_XS>},                                                        \
      QuantizeRows<kPlanes>,                                                                                          \
      QuantizeRows<false>,                                                                                            \
  }
