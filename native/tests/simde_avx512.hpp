// AVX-512 by emulation, so that its kernels can be tested on a processor without it. With -DMICRONET_SIMDE=ON
// the build includes this file before kernels_avx512.cpp. SIMDe (Debian: libsimde-dev) has most intrinsics of
// simd_avx512.hpp; those that its version 0.7.4 lacks are written here, lane by lane or by halves.
#pragma once

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/fma.h>

#if defined(SIMDE_X86_AVX512F_NATIVE)
#error "MICRONET_SIMDE emulates AVX-512: compile without -mavx512f, and without -march of a processor that has it"
#endif

#include <cstdint>
#include <cstring>

namespace simde_missing {

template <class To, class From>
To bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits as another type");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

struct Halves { __m256i low, high; };
struct FloatHalves { __m256 low, high; };
struct DoubleHalves { __m256d low, high; };

template <class T>
T extreme(const T* x, int n) {
  T most = x[0];
  for (int i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

inline __m512i srai_epi32(__m512i x, int by) {
  const auto h = bits<Halves>(x);
  return bits<__m512i>(Halves{_mm256_srai_epi32(h.low, by), _mm256_srai_epi32(h.high, by)});
}
inline __m256i cvtepi32_epi16(__m512i x) {  // the lower 16 bits of each, without clamping
  int32_t from[16];
  int16_t to[16];
  std::memcpy(from, &x, sizeof from);
  for (int i = 0; i < 16; ++i) to[i] = int16_t(from[i]);
  __m256i result;
  std::memcpy(&result, to, sizeof to);
  return result;
}
inline __m512 cvtepi32_ps(__m512i x) {
  const auto h = bits<Halves>(x);
  return bits<__m512>(FloatHalves{_mm256_cvtepi32_ps(h.low), _mm256_cvtepi32_ps(h.high)});
}
inline __m512i cvtps_epi32(__m512 x) {
  const auto h = bits<FloatHalves>(x);
  return bits<__m512i>(Halves{_mm256_cvtps_epi32(h.low), _mm256_cvtps_epi32(h.high)});
}
inline __m512d cvtepi32_pd(__m256i x) {
  return bits<__m512d>(DoubleHalves{_mm256_cvtepi32_pd(_mm256_castsi256_si128(x)),
                                    _mm256_cvtepi32_pd(_mm256_extracti128_si256(x, 1))});
}
inline __m512d cvtps_pd(__m256 x) {
  return bits<__m512d>(
      DoubleHalves{_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))});
}
inline __m256 cvtpd_ps(__m512d x) {
  const auto h = bits<DoubleHalves>(x);
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(h.low)), _mm256_cvtpd_ps(h.high), 1);
}
inline __m256 extractf32x8_ps(__m512 x, int half) {
  const auto h = bits<FloatHalves>(x);
  return half ? h.high : h.low;
}
inline __m256i extracti32x8_epi32(__m512i x, int half) {
  const auto h = bits<Halves>(x);
  return half ? h.high : h.low;
}
inline float reduce_max_ps(__m512 x) {
  float lanes[16];
  std::memcpy(lanes, &x, sizeof lanes);
  return extreme(lanes, 16);
}
inline double reduce_max_pd(__m512d x) {
  double lanes[8];
  std::memcpy(lanes, &x, sizeof lanes);
  return extreme(lanes, 8);
}

}  // namespace simde_missing

// Replace the compiler's functions or macros of these names, which need the instructions.
#undef _mm512_srai_epi32
#undef _mm512_cvtepi32_epi16
#undef _mm512_cvtepi32_ps
#undef _mm512_cvtps_epi32
#undef _mm512_cvtepi32_pd
#undef _mm512_cvtps_pd
#undef _mm512_cvtpd_ps
#undef _mm512_extractf32x8_ps
#undef _mm512_extracti32x8_epi32
#undef _mm512_reduce_max_ps
#undef _mm512_reduce_max_pd
#define _mm512_srai_epi32(x, by) simde_missing::srai_epi32(x, by)
#define _mm512_cvtepi32_epi16(x) simde_missing::cvtepi32_epi16(x)
#define _mm512_cvtepi32_ps(x) simde_missing::cvtepi32_ps(x)
#define _mm512_cvtps_epi32(x) simde_missing::cvtps_epi32(x)
#define _mm512_cvtepi32_pd(x) simde_missing::cvtepi32_pd(x)
#define _mm512_cvtps_pd(x) simde_missing::cvtps_pd(x)
#define _mm512_cvtpd_ps(x) simde_missing::cvtpd_ps(x)
#define _mm512_extractf32x8_ps(x, half) simde_missing::extractf32x8_ps(x, half)
#define _mm512_extracti32x8_epi32(x, half) simde_missing::extracti32x8_epi32(x, half)
#define _mm512_reduce_max_ps(x) simde_missing::reduce_max_ps(x)
#define _mm512_reduce_max_pd(x) simde_missing::reduce_max_pd(x)
