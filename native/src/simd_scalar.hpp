// Vectors of a fixed number of lanes in plain C++, which runs on every platform.
//
// The kernels are written once (kernels_template.hpp) over types with these operations. A panel of a
// matrix has 16 rows, so I (int32) and F (float) have 16 lanes; D (double) has 8. P holds 16 pairs of
// 16-bit integers: two neighbouring columns of each row of a panel. B is one such pair for all lanes.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "nines.hpp"

namespace {

struct Scalar {
  struct I { int32_t v[16]; };
  struct F { float v[16]; };
  struct D { double v[8]; };
  struct P { int16_t v[32]; };
  struct B { int16_t a, b; };

  static constexpr int kIntTokens = 4;
  static constexpr int kFloatTokens = 4;
  static constexpr int kOneTokenPanels = 2;

  template <class V, class Each>
  static V each(Each f) {
    V r;
    for (int i = 0; i < int(sizeof(V) / sizeof(r.v[0])); ++i) r.v[i] = f(i);
    return r;
  }

  // Pairs of integers.
  static P load_pairs(const int16_t* p) { P r; std::memcpy(r.v, p, sizeof r.v); return r; }
  static P load_pairs(const int8_t* p) { return each<P>([&](int i) { return int16_t(p[i]); }); }
  static void store_pairs(int16_t* p, P x) { std::memcpy(p, x.v, sizeof x.v); }
  static void spread8(const int16_t* values, uint8_t mask, int16_t* out) {
    for (int i = 0; i < 8; ++i) out[i] = mask >> i & 1 ? *values++ : int16_t{0};
  }
  static B pair(const int16_t* p) { return {p[0], p[1]}; }
  static I madd(I acc, P w, B x) {
    return each<I>([&](int i) {
      return acc.v[i] + (int32_t(w.v[2 * i]) * x.a + int32_t(w.v[2 * i + 1]) * x.b);
    });
  }
  // 9-bit weights (nines.hpp): the lowest bits of eight pairs, those of the next pair on top of each byte.
  struct Bits { uint8_t v[32]; };
  static Bits load_bits(const uint8_t* p) { Bits r; std::memcpy(r.v, p, sizeof r.v); return r; }
  static Bits next_bits(Bits b) { return bits_of_pair(b, 1); }
  static Bits bits_of_pair(Bits b, int pair) { return each<Bits>([&](int i) { return uint8_t(b.v[i] << pair); }); }
  static P nines_times_128(Bits b, const uint8_t* upper) {
    return each<P>([&](int i) {
      const auto place = micronet::place_in_pair(i / 2, i % 2);
      return int16_t(int8_t(upper[place]) * 256 + (b.v[place] & 128));
    });
  }
  static P divided_by_128(P p) { return each<P>([&](int i) { return int16_t(p.v[i] >> 7); }); }
  static I even(P p) { return each<I>([&](int i) { return int32_t(p.v[2 * i]); }); }
  static I odd(P p) { return each<I>([&](int i) { return int32_t(p.v[2 * i + 1]); }); }

  // 16 integers.
  static I zero_i() { return I{}; }
  static I set_i(int32_t x) { return each<I>([&](int) { return x; }); }
  static I load(const int32_t* p) { I r; std::memcpy(r.v, p, sizeof r.v); return r; }
  static void store(int32_t* p, I x) { std::memcpy(p, x.v, sizeof x.v); }
  static void store_narrow(int16_t* p, I x) {
    for (int i = 0; i < 16; ++i) p[i] = int16_t(x.v[i]);
  }
  static I add(I a, I b) { return each<I>([&](int i) { return int32_t(uint32_t(a.v[i]) + uint32_t(b.v[i])); }); }
  static I sub(I a, I b) { return each<I>([&](int i) { return int32_t(uint32_t(a.v[i]) - uint32_t(b.v[i])); }); }
  static I bits_and(I a, I b) { return each<I>([&](int i) { return a.v[i] & b.v[i]; }); }
  static I bits_or(I a, I b) { return each<I>([&](int i) { return a.v[i] | b.v[i]; }); }
  template <int N> static I shift_left(I a) { return each<I>([&](int i) { return int32_t(uint32_t(a.v[i]) << N); }); }
  template <int N> static I shift_right(I a) { return each<I>([&](int i) { return int32_t(uint32_t(a.v[i]) >> N); }); }
  template <int N> static I shift_right_signed(I a) { return each<I>([&](int i) { return a.v[i] >> N; }); }
  static F as_float(I a) { F r; std::memcpy(r.v, a.v, sizeof r.v); return r; }
  static I as_int(F a) { I r; std::memcpy(r.v, a.v, sizeof r.v); return r; }
  static F to_float(I a) { return each<F>([&](int i) { return float(a.v[i]); }); }
  // x where the integers are equal, else 0.
  static F keep_equal(I a, I b, F x) { return each<F>([&](int i) { return a.v[i] == b.v[i] ? x.v[i] : 0.0f; }); }

  // 16 floats.
  static F zero_f() { return F{}; }
  static F set_f(float x) { return each<F>([&](int) { return x; }); }
  static F load(const float* p) { F r; std::memcpy(r.v, p, sizeof r.v); return r; }
  static void store(float* p, F x) { std::memcpy(p, x.v, sizeof x.v); }
  static F add(F a, F b) { return each<F>([&](int i) { return a.v[i] + b.v[i]; }); }
  static F sub(F a, F b) { return each<F>([&](int i) { return a.v[i] - b.v[i]; }); }
  static F mul(F a, F b) { return each<F>([&](int i) { return a.v[i] * b.v[i]; }); }
  static F fma(F a, F b, F c) { return each<F>([&](int i) { return a.v[i] * b.v[i] + c.v[i]; }); }
  // If one is NaN, the second one, as the instructions of x86 do.
  static F max(F a, F b) { return each<F>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; }); }
  static F min(F a, F b) { return each<F>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; }); }
  // Round to the nearest integer, ties to even; values outside int32 become the smallest int32.
  static I round(F a) {
    return each<I>([&](int i) {
      const float r = std::nearbyintf(a.v[i]);
      return r >= -2147483648.0f && r < 2147483648.0f ? int32_t(r) : INT32_MIN;
    });
  }
  static float sum(F a) {
    float half[8], quarter[4];
    for (int i = 0; i < 8; ++i) half[i] = a.v[i] + a.v[i + 8];
    for (int i = 0; i < 4; ++i) quarter[i] = half[i] + half[i + 4];
    return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
  }
  static float largest(F a) {
    float m = a.v[0];
    for (int i = 1; i < 16; ++i) m = a.v[i] > m ? a.v[i] : m;
    return m;
  }

  // 8 doubles.
  static D zero_d() { return D{}; }
  static D set_d(double x) { return each<D>([&](int) { return x; }); }
  static D load_wide(const float* p) {
    D r;
    for (int i = 0; i < 8; ++i) r.v[i] = double(p[i]);
    return r;
  }
  static D load(const double* p) { D r; std::memcpy(r.v, p, sizeof r.v); return r; }
  static void store(double* p, D x) { std::memcpy(p, x.v, sizeof x.v); }
  static D low(I a) { return each<D>([&](int i) { return double(a.v[i]); }); }
  static D high(I a) { return each<D>([&](int i) { return double(a.v[i + 8]); }); }
  static D low(F a) { return each<D>([&](int i) { return double(a.v[i]); }); }
  static D high(F a) { return each<D>([&](int i) { return double(a.v[i + 8]); }); }
  static F narrow(D low, D high) {
    return each<F>([&](int i) { return float(i < 8 ? low.v[i] : high.v[i - 8]); });
  }
  static D add(D a, D b) { return each<D>([&](int i) { return a.v[i] + b.v[i]; }); }
  static D sub(D a, D b) { return each<D>([&](int i) { return a.v[i] - b.v[i]; }); }
  static D mul(D a, D b) { return each<D>([&](int i) { return a.v[i] * b.v[i]; }); }
  static D fma(D a, D b, D c) { return each<D>([&](int i) { return a.v[i] * b.v[i] + c.v[i]; }); }
  static D max(D a, D b) { return each<D>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; }); }
  // 2^k, where the integer k was rounded by adding 1.5 · 2^52 (so the low bits of `shifted` hold it).
  static D power_of_two(D shifted) {
    return each<D>([&](int i) {
      uint64_t bits;
      std::memcpy(&bits, &shifted.v[i], 8);
      bits = (bits + 1023) << 52;
      double r;
      std::memcpy(&r, &bits, 8);
      return r;
    });
  }
  static double sum(D a) {
    double half[4];
    for (int i = 0; i < 4; ++i) half[i] = a.v[i] + a.v[i + 4];
    return (half[0] + half[2]) + (half[1] + half[3]);
  }
  static double largest(D a) {
    double m = a.v[0];
    for (int i = 1; i < 8; ++i) m = a.v[i] > m ? a.v[i] : m;
    return m;
  }
};

}  // namespace
