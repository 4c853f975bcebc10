// The table of linear kernels that the unit of each instruction set exports. Included after simd_*.h.
#pragma once
#include "vt/cpu/linear_formats.h"
// Order matters: the formats, what is written in them.
#include "vt/cpu/linear_columns.h"
// Again.
#include "vt/cpu/linear_f32.h"
#include "vt/cpu/linear_int.h"
#include "vt/cpu/linear_round.h"

namespace {

template <class F>
constexpr void AddFloat(vt::LinearKernels& table, vt::CpuFormat format) {
  table.exact[format] = Exact<F>;
  table.unpack_row[format] = UnpackRow<F>;
}

template <class F>
constexpr void AddInteger(vt::LinearKernels& table, vt::CpuFormat format) {
  AddFloat<F>(table, format);
  constexpr vt::XForm kExactFew = kMultipliesBytes<F> ? vt::kXPlanes : vt::kXWords;
  constexpr vt::XForm kRounded = kMultipliesBytes<F> ? vt::kXBytes : vt::kXWords;
  table.int16.few[format] = {Few<F, kExactFew>, kExactFew};
  table.int16.gemm[format] = {Gemm<F, vt::kXWords>, vt::kXWords};
  table.int8.few[format] = {Few<F, kRounded>, kRounded};
  table.int8.gemm[format] = {Gemm<F, kRounded>, kRounded};
}

constexpr vt::LinearKernels MakeLinearKernels() {
  vt::LinearKernels table;
  table.few_rows = kFewRows;
  table.quantize[vt::kXWords] = QuantizeRows<vt::kXWords>;
  table.quantize[vt::kXPlanes] = QuantizeRows<vt::kXPlanes>;
  table.quantize[vt::kXBytes] = QuantizeRows<vt::kXBytes>;
  AddFloat<F32>(table, vt::kCpuF32);
  AddFloat<F16>(table, vt::kCpuF16);
  AddFloat<BF16>(table, vt::kCpuBF16);
  AddInteger<Q8_0>(table, vt::kCpuQ8_0);
  AddInteger<Q4_0>(table, vt::kCpuQ4_0);
  AddInteger<Q4_1>(table, vt::kCpuQ4_1);
  AddInteger<Q5_0>(table, vt::kCpuQ5_0);
  AddInteger<Q5_1>(table, vt::kCpuQ5_1);
  AddInteger<Q2_K>(table, vt::kCpuQ2_K);
  AddInteger<Q3_K>(table, vt::kCpuQ3_K);
  AddInteger<Q4_K>(table, vt::kCpuQ4_K);
  AddInteger<Q5_K>(table, vt::kCpuQ5_K);
  AddInteger<Q6_K>(table, vt::kCpuQ6_K);
  AddInteger<IQ4_NL>(table, vt::kCpuIQ4_NL);
  AddInteger<IQ4_XS>(table, vt::kCpuIQ4_XS);
  return table;
}

}  // namespace
