// The operations of simd_scalar.hpp with AVX2 and FMA; 16 lanes are two registers.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "spread_table.hpp"

namespace {

struct Avx2 {
  struct I { __m256i a, b; };
  struct F { __m256 a, b; };
  struct D { __m256d a, b; };
  using P = I;
  using B = __m256i;

  static constexpr int kIntTokens = 4;    // 8 sums in 16 registers; the others hold weights and inputs
  static constexpr int kFloatTokens = 6;  // 12 sums
  static constexpr int kOneTokenPanels = 4;

  static P load_pairs(const int16_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16))};
  }
  static P load_pairs(const int8_t* p) {
    return {_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16)))};
  }
  static void store_pairs(int16_t* p, P x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.a);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 16), x.b);
  }
  static void spread8(const int16_t* values, uint8_t mask, int16_t* out) {
    const __m128i places = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kSpread.places[mask]));
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(all, places));
  }
  static B pair(const int16_t* p) {
    int32_t both;
    __builtin_memcpy(&both, p, 4);
    return _mm256_set1_epi32(both);
  }
  static I madd(I acc, P w, B x) {
    return {_mm256_add_epi32(acc.a, _mm256_madd_epi16(w.a, x)),
            _mm256_add_epi32(acc.b, _mm256_madd_epi16(w.b, x))};
  }
  // 9-bit weights (nines.hpp): the lowest bits of eight pairs, those of the next pair on top of each byte.
  using Bits = __m256i;
  static Bits load_bits(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static Bits next_bits(Bits b) { return _mm256_add_epi8(b, b); }
  static Bits bits_of_pair(Bits b, int pair) { return _mm256_sll_epi16(b, _mm_cvtsi32_si128(pair)); }
  static P nines_times_128(Bits b, const uint8_t* upper) {
    const __m256i last = _mm256_and_si256(b, _mm256_set1_epi8(int8_t(-128)));
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(upper));
    return {_mm256_unpacklo_epi8(last, bytes), _mm256_unpackhi_epi8(last, bytes)};
  }
  static P divided_by_128(P p) { return {_mm256_srai_epi16(p.a, 7), _mm256_srai_epi16(p.b, 7)}; }
  static I even(P p) {
    return {_mm256_srai_epi32(_mm256_slli_epi32(p.a, 16), 16),
            _mm256_srai_epi32(_mm256_slli_epi32(p.b, 16), 16)};
  }
  static I odd(P p) { return {_mm256_srai_epi32(p.a, 16), _mm256_srai_epi32(p.b, 16)}; }

  static I zero_i() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static I set_i(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  static I load(const int32_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
  }
  static void store(int32_t* p, I x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.a);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), x.b);
  }
  static void store_narrow(int16_t* p, I x) {  // the values fit in 16 bits
    const __m256i mixed = _mm256_packs_epi32(x.a, x.b);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(mixed, 0xD8));
  }
  static I add(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
  static I sub(I x, I y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
  static I bits_and(I x, I y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
  static I bits_or(I x, I y) { return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)}; }
  template <int N> static I shift_left(I x) { return {_mm256_slli_epi32(x.a, N), _mm256_slli_epi32(x.b, N)}; }
  template <int N> static I shift_right(I x) { return {_mm256_srli_epi32(x.a, N), _mm256_srli_epi32(x.b, N)}; }
  template <int N> static I shift_right_signed(I x) { return {_mm256_srai_epi32(x.a, N), _mm256_srai_epi32(x.b, N)}; }
  static F as_float(I x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
  static I as_int(F x) { return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }
  static F to_float(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
  static F keep_equal(I x, I y, F v) {
    return {_mm256_and_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(x.a, y.a)), v.a),
            _mm256_and_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(x.b, y.b)), v.b)};
  }

  static F zero_f() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static F set_f(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static void store(float* p, F x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
  }
  static F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  static F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  static F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  static F fma(F x, F y, F z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
  }
  static F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  static F min(F x, F y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
  static I round(F x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
  static float sum(F x) {
    const __m256 half = _mm256_add_ps(x.a, x.b);
    __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_shuffle_ps(quarter, quarter, 1)));
  }
  static float largest(F x) {
    const __m256 half = _mm256_max_ps(x.a, x.b);
    __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    quarter = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(quarter, _mm_shuffle_ps(quarter, quarter, 1)));
  }

  static D zero_d() { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
  static D set_d(double x) { return {_mm256_set1_pd(x), _mm256_set1_pd(x)}; }
  static D load_wide(const float* p) { return {_mm256_cvtps_pd(_mm_loadu_ps(p)), _mm256_cvtps_pd(_mm_loadu_ps(p + 4))}; }
  static D load(const double* p) { return {_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)}; }
  static void store(double* p, D x) {
    _mm256_storeu_pd(p, x.a);
    _mm256_storeu_pd(p + 4, x.b);
  }
  static D wide(__m256i x) {
    return {_mm256_cvtepi32_pd(_mm256_castsi256_si128(x)),
            _mm256_cvtepi32_pd(_mm256_extracti128_si256(x, 1))};
  }
  static D wide(__m256 x) {
    return {_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
  }
  static D low(I x) { return wide(x.a); }
  static D high(I x) { return wide(x.b); }
  static D low(F x) { return wide(x.a); }
  static D high(F x) { return wide(x.b); }
  static F narrow(D low, D high) {
    return {_mm256_set_m128(_mm256_cvtpd_ps(low.b), _mm256_cvtpd_ps(low.a)),
            _mm256_set_m128(_mm256_cvtpd_ps(high.b), _mm256_cvtpd_ps(high.a))};
  }
  static D add(D x, D y) { return {_mm256_add_pd(x.a, y.a), _mm256_add_pd(x.b, y.b)}; }
  static D sub(D x, D y) { return {_mm256_sub_pd(x.a, y.a), _mm256_sub_pd(x.b, y.b)}; }
  static D mul(D x, D y) { return {_mm256_mul_pd(x.a, y.a), _mm256_mul_pd(x.b, y.b)}; }
  static D fma(D x, D y, D z) {
    return {_mm256_fmadd_pd(x.a, y.a, z.a), _mm256_fmadd_pd(x.b, y.b, z.b)};
  }
  static D max(D x, D y) { return {_mm256_max_pd(x.a, y.a), _mm256_max_pd(x.b, y.b)}; }
  static __m256d power(__m256d shifted) {
    const __m256i bits = _mm256_add_epi64(_mm256_castpd_si256(shifted), _mm256_set1_epi64x(1023));
    return _mm256_castsi256_pd(_mm256_slli_epi64(bits, 52));
  }
  static D power_of_two(D shifted) { return {power(shifted.a), power(shifted.b)}; }
  static double sum(D x) {
    const __m256d half = _mm256_add_pd(x.a, x.b);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
  static double largest(D x) {
    const __m256d half = _mm256_max_pd(x.a, x.b);
    const __m128d two = _mm_max_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
    return _mm_cvtsd_f64(_mm_max_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

}  // namespace
