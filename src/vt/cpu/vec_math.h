// exp, tanh, sine and cosine over Vec (vec_avx2.h or vec_avx512.h, which the unit includes first): straight-line, the
// same for every lane, accurate to about one unit in the last place.
#pragma once
#include <cstdint>

namespace vt {
namespace {

// Relative error below 1.5e-7 where the result is a normal number; infinity above 88.73, 0 below -104, NaN for NaN.
inline Vec::F Exp(Vec::F x) {
  using V = Vec;
  x = V::Min(V::Set(90), V::Max(V::Set(-104), x));
  const V::F n = V::Round(V::Mul(x, V::Set(1.44269504088896341f)));
  V::F r = V::Fnma(n, V::Set(0.693145751953125f), x);  // ln 2 in two parts; n * the first is exact
  r = V::Fnma(n, V::Set(1.42860682030941723212e-6f), r);
  // exp(r) = 1 + r + r^2 g(r), g fitted over |r| <= ln(2) / 2
  V::F g = V::Fma(V::Set(0x1.6d7546p-10f), r, V::Set(0x1.120b74p-7f));
  g = V::Fma(g, r, V::Set(0x1.5554b8p-5f));
  g = V::Fma(g, r, V::Set(0x1.5554dcp-3f));
  g = V::Fma(g, r, V::Set(0.5f));
  const V::F p = V::Add(V::Set(1), V::Fma(V::Mul(r, r), g, r));
  return V::Scale(p, n);
}

// Relative error below 3e-7 everywhere.
inline Vec::F Tanh(Vec::F x) {
  using V = Vec;
  const V::F magnitude = V::Abs(x), z = V::Mul(x, x);
  // tanh(x) = x + x z h(z) near 0, where 1 - 2 / (exp(2x) + 1) would cancel.
  V::F h = V::Fma(V::Set(-0.006062237545847893f), z, V::Set(0.0209750197827816f));
  h = V::Fma(h, z, V::Set(-0.05384669825434685f));
  h = V::Fma(h, z, V::Set(0.13332746922969818f));
  h = V::Fma(h, z, V::Set(-0.333333283662796f));
  const V::F small = V::Fma(V::Mul(x, z), h, x);
  const V::F e = Exp(V::Add(magnitude, magnitude));
  const V::F large = V::Sub(V::Set(1), V::Div(V::Set(2), V::Add(e, V::Set(1))));
  return V::IfLess(magnitude, V::Set(0.625f), small, V::CopySign(large, x));
}

// Sine and cosine of half a vector, in double.
inline void SinCosHalf(Vec::D x, Vec::D& sine, Vec::D& cosine) {
  using V = Vec;
  // Adding 1.5 * 2^52 rounds to a whole number and leaves it in the low bits.
  const V::D shifted = V::FmaD(x, V::SetD(0.63661977236758134308), V::SetD(6755399441055744.0));
  const V::I quadrant = V::Bits(shifted);
  const V::D q = V::SubD(shifted, V::SetD(6755399441055744.0));
  V::D r = V::FnmaD(q, V::SetD(1.57079632679489655800), x);
  r = V::FnmaD(q, V::SetD(6.12323399573676603587e-17), r);
  const V::D z = V::MulD(r, r);
  // Taylor series to the 11th and 12th power: 7e-12 at pi / 4, far below a float's last place.
  V::D s = V::FmaD(V::SetD(-1.0 / 39916800), z, V::SetD(1.0 / 362880));
  s = V::FmaD(s, z, V::SetD(-1.0 / 5040));
  s = V::FmaD(s, z, V::SetD(1.0 / 120));
  s = V::FmaD(s, z, V::SetD(-1.0 / 6));
  s = V::FmaD(V::MulD(s, z), r, r);
  V::D c = V::FmaD(V::SetD(1.0 / 479001600), z, V::SetD(-1.0 / 3628800));
  c = V::FmaD(c, z, V::SetD(1.0 / 40320));
  c = V::FmaD(c, z, V::SetD(-1.0 / 720));
  c = V::FmaD(c, z, V::SetD(1.0 / 24));
  c = V::FmaD(c, z, V::SetD(-0.5));
  c = V::FmaD(c, z, V::SetD(1));
  sine = V::NegateIfBit1(V::IfOdd(quadrant, c, s), quadrant);
  cosine = V::NegateIfBit1(V::IfOdd(quadrant, s, c), V::AddOne(quadrant));
}

// Correct to the last place of a float for |x| up to 2^31: rotary angles of any position.
inline void SinCos(Vec::F x, Vec::F& sine, Vec::F& cosine) {
  Vec::D sine_low, cosine_low, sine_high, cosine_high;
  SinCosHalf(Vec::WidenHalf(x, 0), sine_low, cosine_low);
  SinCosHalf(Vec::WidenHalf(x, 1), sine_high, cosine_high);
  sine = Vec::Narrow(sine_low, sine_high);
  cosine = Vec::Narrow(cosine_low, cosine_high);
}

}  // namespace
}  // namespace vt
