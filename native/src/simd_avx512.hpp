// The operations of simd_scalar.hpp with AVX-512 (F, BW, DQ, VL) and VNNI; 16 lanes are one register.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "simd_avx2.hpp"

namespace {

// AVX2's registers with VNNI: multiplying and adding is one instruction.
struct Avx2Vnni : Avx2 {
  static I madd(I acc, P w, B x) {
    return {_mm256_dpwssd_epi32(acc.a, w.a, x), _mm256_dpwssd_epi32(acc.b, w.b, x)};
  }
};

struct Avx512 {
  // Structs, so that overloads can distinguish integers and pairs from other uses of the same register.
  struct I { __m512i v; };
  struct F { __m512 v; };
  struct D { __m512d v; };
  using P = I;
  using B = __m512i;

  static constexpr int kIntTokens = 8;
  static constexpr int kFloatTokens = 12;
  static constexpr int kOneTokenPanels = 8;

  static P load_pairs(const int16_t* p) { return {_mm512_loadu_si512(p)}; }
  static P load_pairs(const int8_t* p) {
    return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static B pair(const int16_t* p) {
    int32_t both;
    __builtin_memcpy(&both, p, 4);
    return _mm512_set1_epi32(both);
  }
  static I madd(I acc, P w, B x) { return {_mm512_dpwssd_epi32(acc.v, w.v, x)}; }
  static I even(P p) { return {_mm512_srai_epi32(_mm512_slli_epi32(p.v, 16), 16)}; }
  static I odd(P p) { return {_mm512_srai_epi32(p.v, 16)}; }

  static I zero_i() { return {_mm512_setzero_si512()}; }
  static I set_i(int32_t x) { return {_mm512_set1_epi32(x)}; }
  static I load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
  static void store(int32_t* p, I x) { _mm512_storeu_si512(p, x.v); }
  static void store_narrow(int16_t* p, I x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(x.v));
  }
  static I add(I x, I y) { return {_mm512_add_epi32(x.v, y.v)}; }
  static I sub(I x, I y) { return {_mm512_sub_epi32(x.v, y.v)}; }
  static I bits_and(I x, I y) { return {_mm512_and_si512(x.v, y.v)}; }
  static I bits_or(I x, I y) { return {_mm512_or_si512(x.v, y.v)}; }
  template <int N> static I shift_left(I x) { return {_mm512_slli_epi32(x.v, N)}; }
  template <int N> static I shift_right(I x) { return {_mm512_srli_epi32(x.v, N)}; }
  static F as_float(I x) { return {_mm512_castsi512_ps(x.v)}; }
  static I as_int(F x) { return {_mm512_castps_si512(x.v)}; }
  static F to_float(I x) { return {_mm512_cvtepi32_ps(x.v)}; }
  static F keep_equal(I x, I y, F v) {
    return {_mm512_maskz_mov_ps(_mm512_cmpeq_epi32_mask(x.v, y.v), v.v)};
  }

  static F zero_f() { return {_mm512_setzero_ps()}; }
  static F set_f(float x) { return {_mm512_set1_ps(x)}; }
  static F load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x.v); }
  static F add(F x, F y) { return {_mm512_add_ps(x.v, y.v)}; }
  static F sub(F x, F y) { return {_mm512_sub_ps(x.v, y.v)}; }
  static F mul(F x, F y) { return {_mm512_mul_ps(x.v, y.v)}; }
  static F fma(F x, F y, F z) { return {_mm512_fmadd_ps(x.v, y.v, z.v)}; }
  static F max(F x, F y) { return {_mm512_max_ps(x.v, y.v)}; }
  static F min(F x, F y) { return {_mm512_min_ps(x.v, y.v)}; }
  static I round(F x) { return {_mm512_cvtps_epi32(x.v)}; }
  static float sum(F x) {
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
    __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_shuffle_ps(quarter, quarter, 1)));
  }
  static float largest(F x) { return _mm512_reduce_max_ps(x.v); }

  static D zero_d() { return {_mm512_setzero_pd()}; }
  static D set_d(double x) { return {_mm512_set1_pd(x)}; }
  static D load_wide(const float* p) { return {_mm512_cvtps_pd(_mm256_loadu_ps(p))}; }
  static D load(const double* p) { return {_mm512_loadu_pd(p)}; }
  static void store(double* p, D x) { _mm512_storeu_pd(p, x.v); }
  static D low(I x) { return {_mm512_cvtepi32_pd(_mm512_castsi512_si256(x.v))}; }
  static D high(I x) { return {_mm512_cvtepi32_pd(_mm512_extracti32x8_epi32(x.v, 1))}; }
  static D low(F x) { return {_mm512_cvtps_pd(_mm512_castps512_ps256(x.v))}; }
  static D high(F x) { return {_mm512_cvtps_pd(_mm512_extractf32x8_ps(x.v, 1))}; }
  static F narrow(D low, D high) {
    return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low.v)),
                               _mm512_cvtpd_ps(high.v), 1)};
  }
  static D add(D x, D y) { return {_mm512_add_pd(x.v, y.v)}; }
  static D sub(D x, D y) { return {_mm512_sub_pd(x.v, y.v)}; }
  static D mul(D x, D y) { return {_mm512_mul_pd(x.v, y.v)}; }
  static D fma(D x, D y, D z) { return {_mm512_fmadd_pd(x.v, y.v, z.v)}; }
  static D max(D x, D y) { return {_mm512_max_pd(x.v, y.v)}; }
  static D power_of_two(D shifted) {
    const __m512i bits = _mm512_add_epi64(_mm512_castpd_si512(shifted.v), _mm512_set1_epi64(1023));
    return {_mm512_castsi512_pd(_mm512_slli_epi64(bits, 52))};
  }
  static double sum(D x) {
    const __m256d half = _mm256_add_pd(_mm512_castpd512_pd256(x.v), _mm512_extractf64x4_pd(x.v, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
  static double largest(D x) { return _mm512_reduce_max_pd(x.v); }
};

}  // namespace
