// Exponentials and logarithms of vectors S (see simd_scalar.hpp).
#pragma once

#include <cstdint>

namespace {

// exp(x) for x ≤ 0 in float, within 2 units in the last place; below −87.3 the smallest normal
// number. NaN stays NaN. Coefficients: Cephes, expf.
template <class S>
inline typename S::F exponential_f(typename S::F x) {
  x = S::max(S::set_f(-87.3f), x);  // in this order NaN stays NaN
  const auto k = S::round(S::mul(x, S::set_f(1.44269504088896341f)));
  const auto n = S::to_float(k);
  auto r = S::fma(n, S::set_f(-0.693359375f), x);
  r = S::fma(n, S::set_f(2.12194440e-4f), r);
  auto p = S::set_f(1.9875691500e-4f);
  p = S::fma(p, r, S::set_f(1.3981999507e-3f));
  p = S::fma(p, r, S::set_f(8.3334519073e-3f));
  p = S::fma(p, r, S::set_f(4.1665795894e-2f));
  p = S::fma(p, r, S::set_f(1.6666665459e-1f));
  p = S::fma(p, r, S::set_f(5.0000001201e-1f));
  p = S::fma(p, S::mul(r, r), S::add(r, S::set_f(1.0f)));
  const auto power = S::as_float(S::template shift_left<23>(S::add(k, S::set_i(127))));
  return S::mul(p, power);
}

// exp(x) for x up to 70, for sums of thousands of terms: 2^(x / ln 2) with the power of two added to the
// exponent's bits. The polynomial is the best of degree 5 on [-½, ½], within 2.4e-7 in fp32; scaling x
// adds 6e-8 |x|. So the error is 1e-6 for the terms that matter in a sum and 6e-6 for the smallest.
template <class S>
inline typename S::F rough_exponential_f(typename S::F x) {
  x = S::max(S::set_f(-87.0f), x);  // in this order NaN stays NaN
  const auto magic = S::set_f(12582912.0f);  // 1.5 · 2^23: adding it rounds to an integer
  const auto scaled = S::mul(x, S::set_f(1.44269504088896341f));
  const auto shifted = S::add(scaled, magic);
  const auto f = S::sub(scaled, S::sub(shifted, magic));
  auto p = S::set_f(1.327647097e-3f);
  p = S::fma(p, f, S::set_f(9.675541326e-3f));
  p = S::fma(p, f, S::set_f(5.550713277e-2f));
  p = S::fma(p, f, S::set_f(2.402211972e-1f));
  p = S::fma(p, f, S::set_f(6.931469671e-1f));
  p = S::fma(p, f, S::set_f(1.000000072f));
  return S::as_float(S::add(S::as_int(p), S::template shift_left<23>(S::as_int(shifted))));
}

// exp(x) for x ≤ 0 in double, within 1e-15 of its value; below −708 about 1e-307, which is negligible
// beside the largest term, 1. Taylor series of degree 12 on |r| ≤ ln 2 / 2.
template <class S>
inline typename S::D exponential_d(typename S::D x) {
  x = S::max(S::set_d(-708.0), x);
  const auto magic = S::set_d(6755399441055744.0);  // 1.5 · 2^52: adding it rounds to an integer
  const auto shifted = S::add(S::mul(x, S::set_d(1.4426950408889634)), magic);
  const auto n = S::sub(shifted, magic);
  auto r = S::sub(x, S::mul(n, S::set_d(0.693147180369123816490)));  // exact: few bits
  r = S::sub(r, S::mul(n, S::set_d(1.90821492927058770002e-10)));
  auto p = S::set_d(1.0 / 479001600);
  p = S::fma(p, r, S::set_d(1.0 / 39916800));
  p = S::fma(p, r, S::set_d(1.0 / 3628800));
  p = S::fma(p, r, S::set_d(1.0 / 362880));
  p = S::fma(p, r, S::set_d(1.0 / 40320));
  p = S::fma(p, r, S::set_d(1.0 / 5040));
  p = S::fma(p, r, S::set_d(1.0 / 720));
  p = S::fma(p, r, S::set_d(1.0 / 120));
  p = S::fma(p, r, S::set_d(1.0 / 24));
  p = S::fma(p, r, S::set_d(1.0 / 6));
  p = S::fma(p, r, S::set_d(0.5));
  p = S::fma(p, r, S::set_d(1.0));
  p = S::fma(p, r, S::set_d(1.0));
  return S::mul(p, S::power_of_two(shifted));
}

// log(x) for x > 0 in float, within 2 units in the last place; values below the smallest normal
// number, 0 included, count as that number. Coefficients: Cephes, logf.
template <class S>
inline typename S::F logarithm_f(typename S::F x) {
  x = S::max(S::set_f(1.17549435e-38f), x);
  // x = m · 2^e with m in [√½, √2): subtracting √½'s bits puts the cut between exponents there.
  const auto bits = S::sub(S::as_int(x), S::set_i(0x3f3504f3));
  const auto biased = S::template shift_right<23>(S::add(bits, S::set_i(0x3f800000)));
  const auto e = S::to_float(S::sub(biased, S::set_i(127)));
  const auto mantissa = S::add(S::bits_and(bits, S::set_i(0x007fffff)), S::set_i(0x3f3504f3));
  const auto r = S::sub(S::as_float(mantissa), S::set_f(1.0f));
  const auto square = S::mul(r, r);
  auto p = S::set_f(7.0376836292e-2f);
  p = S::fma(p, r, S::set_f(-1.1514610310e-1f));
  p = S::fma(p, r, S::set_f(1.1676998740e-1f));
  p = S::fma(p, r, S::set_f(-1.2420140846e-1f));
  p = S::fma(p, r, S::set_f(1.4249322787e-1f));
  p = S::fma(p, r, S::set_f(-1.6668057665e-1f));
  p = S::fma(p, r, S::set_f(2.0000714765e-1f));
  p = S::fma(p, r, S::set_f(-2.4999993993e-1f));
  p = S::fma(p, r, S::set_f(3.3333331174e-1f));
  p = S::mul(S::mul(p, r), square);
  p = S::fma(e, S::set_f(-2.12194440e-4f), p);
  p = S::fma(square, S::set_f(-0.5f), p);
  return S::fma(e, S::set_f(0.693359375f), S::add(r, p));
}

}  // namespace
