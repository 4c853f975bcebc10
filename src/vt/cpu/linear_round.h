// Rounds rows of x to the forms that the kernels of integer formats read. Included after linear_columns.h by the unit
// of each instruction set; everything is internal to that unit.
#pragma once

namespace {

// Below this a row's 32 values count as zeros: the reciprocal of their scale would overflow.
constexpr float kLeastMagnitude = 1e-30f;

template <vt::XForm kForm>
void QuantizeRows(const float* x, int64_t k, int64_t begin, int64_t end, const vt::QuantizedRows& out) {
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t i = 0; i < k / 32; ++i) {
      const float* in = x + r * k + i * 32;
      const uint32_t low = MaxMagnitudeBits16(in), high = MaxMagnitudeBits16(in + 16), bits = low > high ? low : high;
      float largest;
      std::memcpy(&largest, &bits, 4);
      // A number that is not finite has the largest bits; its scale spoils every sum of the row.
      const bool finite = bits < 0x7f800000u;
      constexpr float kLargest = kForm == vt::kXBytes ? 127 : vt::kLargestQ;
      const float inverse = finite && largest >= kLeastMagnitude ? kLargest / largest : 0.0f;
      const float scale = finite ? (inverse != 0 ? largest / kLargest : 0.0f) : __builtin_nanf("");
      // What is not finite becomes zero: any integer would do.
      alignas(64) float finite_in[32] = {};
      const float* values = finite ? in : finite_in;
      int16_t* row = out.q + r * out.stride;
      int32_t sums[2];
      for (int p = 0; p < 2; ++p) {
        int8_t* plane = reinterpret_cast<int8_t*>(row) + i * 32 + p * 16;
        if constexpr (kForm == vt::kXBytes) {
          sums[p] = QuantizePlane16(values + p * 16, inverse, plane);
        } else if constexpr (kForm == vt::kXPlanes) {
          sums[p] = QuantizePlanes16(values + p * 16, inverse, plane, plane + out.stride);
        } else {
          sums[p] = Quantize16(values + p * 16, inverse, row + i * 32 + p * 16);
        }
        out.sum16[r * (out.stride / 16) + 2 * i + p] = -sums[p];
        out.min16[r * (out.stride / 16) + 2 * i + p] = scale * static_cast<float>(sums[p]);
      }
      out.scale[r * (out.stride / 32) + i] = scale;
      out.sum32[r * (out.stride / 32) + i] = -sums[0] - sums[1];
      out.min32[r * (out.stride / 32) + i] = scale * static_cast<float>(sums[0] + sums[1]);
    }
  }
}

}  // namespace
