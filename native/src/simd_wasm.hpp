// The operations of simd_scalar.hpp with WebAssembly's SIMD128; 16 lanes are four vectors.
//
// Results are bit-identical to the scalar ones: products are not fused with sums, min, max and rounding treat NaN and
// overflow in the same way, and sums over lanes are added in the same order.
#pragma once

#include <wasm_simd128.h>

#include <cstdint>

#include "spread_table.hpp"

namespace {

struct Simd128 {
  // Structs, so that overloads can distinguish different contents of one vector type.
  struct I { v128_t v[4]; };
  struct F { v128_t v[4]; };
  struct D { v128_t v[4]; };
  using P = I;
  using B = v128_t;

  static constexpr int kIntTokens = 2;
  static constexpr int kFloatTokens = 1;
  static constexpr int kOneTokenPanels = 2;

  // An operation on each of four vectors.
  template <class V, class Each>
  static V each(Each f) { return V{{f(0), f(1), f(2), f(3)}}; }
  template <class V, class T>
  static V load_all(const T* p) {
    constexpr int kCount = int(16 / sizeof(T));
    return each<V>([&](int i) { return wasm_v128_load(p + kCount * i); });
  }
  template <class V, class T>
  static void store_all(T* p, V x) {
    constexpr int kCount = int(16 / sizeof(T));
    for (int i = 0; i < 4; ++i) wasm_v128_store(p + kCount * i, x.v[i]);
  }

  static P load_pairs(const int16_t* p) { return load_all<P>(p); }
  static P load_pairs(const int8_t* p) {
    return each<P>([&](int i) { return wasm_i16x8_load8x8(p + 8 * i); });
  }
  static void store_pairs(int16_t* p, P x) { store_all(p, x); }
  static void spread8(const int16_t* values, uint8_t mask, int16_t* out) {
    wasm_v128_store(out, wasm_i8x16_swizzle(wasm_v128_load(values), wasm_v128_load(kSpread.places[mask])));
  }
  static B pair(const int16_t* p) { return wasm_v128_load32_splat(p); }
  static I madd(I acc, P w, B x) {
    return each<I>([&](int i) { return wasm_i32x4_add(acc.v[i], wasm_i32x4_dot_i16x8(w.v[i], x)); });
  }
  // 9-bit weights (nines.hpp): the lowest bits of eight pairs, those of the next pair on top of each byte.
  struct Bits { v128_t low, high; };
  static Bits load_bits(const uint8_t* p) { return {wasm_v128_load(p), wasm_v128_load(p + 16)}; }
  static Bits next_bits(Bits b) { return {wasm_i8x16_add(b.low, b.low), wasm_i8x16_add(b.high, b.high)}; }
  static Bits bits_of_pair(Bits b, int pair) {
    return {wasm_i8x16_shl(b.low, uint32_t(pair)), wasm_i8x16_shl(b.high, uint32_t(pair))};
  }
  // Rows 0 to 3 and 8 to 11 are in the first 16 bytes, the others in the second.
  static v128_t lower(v128_t last, v128_t upper) {
    return wasm_i8x16_shuffle(last, upper, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
  static v128_t higher(v128_t last, v128_t upper) {
    return wasm_i8x16_shuffle(last, upper, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
  static P nines_times_128(Bits b, const uint8_t* upper) {
    const v128_t top = wasm_i8x16_splat(int8_t(-128)), a = wasm_v128_and(b.low, top), c = wasm_v128_and(b.high, top);
    const v128_t low = wasm_v128_load(upper), high = wasm_v128_load(upper + 16);
    return {{lower(a, low), lower(c, high), higher(a, low), higher(c, high)}};
  }
  static P divided_by_128(P p) { return each<P>([&](int i) { return wasm_i16x8_shr(p.v[i], 7); }); }
  static I even(P p) { return each<I>([&](int i) { return wasm_i32x4_shr(wasm_i32x4_shl(p.v[i], 16), 16); }); }
  static I odd(P p) { return each<I>([&](int i) { return wasm_i32x4_shr(p.v[i], 16); }); }

  static I zero_i() { return set_i(0); }
  static I set_i(int32_t x) { return each<I>([&](int) { return wasm_i32x4_splat(x); }); }
  static I load(const int32_t* p) { return load_all<I>(p); }
  static void store(int32_t* p, I x) { store_all(p, x); }
  static void store_narrow(int16_t* p, I x) {  // the values fit in 16 bits
    wasm_v128_store(p, wasm_i16x8_narrow_i32x4(x.v[0], x.v[1]));
    wasm_v128_store(p + 8, wasm_i16x8_narrow_i32x4(x.v[2], x.v[3]));
  }
  static I add(I x, I y) { return each<I>([&](int i) { return wasm_i32x4_add(x.v[i], y.v[i]); }); }
  static I sub(I x, I y) { return each<I>([&](int i) { return wasm_i32x4_sub(x.v[i], y.v[i]); }); }
  static I bits_and(I x, I y) { return each<I>([&](int i) { return wasm_v128_and(x.v[i], y.v[i]); }); }
  static I bits_or(I x, I y) { return each<I>([&](int i) { return wasm_v128_or(x.v[i], y.v[i]); }); }
  template <int N> static I shift_left(I x) { return each<I>([&](int i) { return wasm_i32x4_shl(x.v[i], N); }); }
  template <int N> static I shift_right(I x) { return each<I>([&](int i) { return wasm_u32x4_shr(x.v[i], N); }); }
  template <int N> static I shift_right_signed(I x) { return each<I>([&](int i) { return wasm_i32x4_shr(x.v[i], N); }); }
  static F as_float(I x) { return each<F>([&](int i) { return x.v[i]; }); }
  static I as_int(F x) { return each<I>([&](int i) { return x.v[i]; }); }
  static F to_float(I x) { return each<F>([&](int i) { return wasm_f32x4_convert_i32x4(x.v[i]); }); }
  static F keep_equal(I x, I y, F v) {
    return each<F>([&](int i) { return wasm_v128_and(wasm_i32x4_eq(x.v[i], y.v[i]), v.v[i]); });
  }

  static F zero_f() { return set_f(0); }
  static F set_f(float x) { return each<F>([&](int) { return wasm_f32x4_splat(x); }); }
  static F load(const float* p) { return load_all<F>(p); }
  static void store(float* p, F x) { store_all(p, x); }
  static F add(F x, F y) { return each<F>([&](int i) { return wasm_f32x4_add(x.v[i], y.v[i]); }); }
  static F sub(F x, F y) { return each<F>([&](int i) { return wasm_f32x4_sub(x.v[i], y.v[i]); }); }
  static F mul(F x, F y) { return each<F>([&](int i) { return wasm_f32x4_mul(x.v[i], y.v[i]); }); }
  static F fma(F x, F y, F z) { return add(mul(x, y), z); }
  // pmax(b, a) is a > b ? a : b, and so the second one where a comparison with NaN fails.
  static F max(F x, F y) { return each<F>([&](int i) { return wasm_f32x4_pmax(y.v[i], x.v[i]); }); }
  static F min(F x, F y) { return each<F>([&](int i) { return wasm_f32x4_pmin(y.v[i], x.v[i]); }); }
  // What no int32 can hold, NaN too, becomes the smallest one; the instruction alone would give the nearest one or 0.
  static I round(F x) {
    return each<I>([&](int i) {
      const v128_t rounded = wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(x.v[i]));
      return wasm_v128_bitselect(rounded, wasm_i32x4_splat(INT32_MIN),
                                 wasm_f32x4_lt(x.v[i], wasm_f32x4_splat(2147483648.0f)));
    });
  }
  static float sum(F x) {
    const v128_t quarter = wasm_f32x4_add(wasm_f32x4_add(x.v[0], x.v[2]), wasm_f32x4_add(x.v[1], x.v[3]));
    const float a = wasm_f32x4_extract_lane(quarter, 0) + wasm_f32x4_extract_lane(quarter, 2);
    return a + (wasm_f32x4_extract_lane(quarter, 1) + wasm_f32x4_extract_lane(quarter, 3));
  }
  // Lane after lane: of several zeros the first remains, as in plain C++.
  static float largest(F x) {
    float all[16];
    store(all, x);
    float most = all[0];
    for (float value : all) most = value > most ? value : most;
    return most;
  }

  static D zero_d() { return set_d(0); }
  static D set_d(double x) { return each<D>([&](int) { return wasm_f64x2_splat(x); }); }
  static D load_wide(const float* p) {
    return each<D>([&](int i) { return wasm_f64x2_promote_low_f32x4(wasm_v128_load64_zero(p + 2 * i)); });
  }
  static D load(const double* p) { return load_all<D>(p); }
  static void store(double* p, D x) { store_all(p, x); }
  static v128_t upper_half(v128_t x) { return wasm_i64x2_shuffle(x, x, 1, 1); }
  static D wide(v128_t a, v128_t b, v128_t (*widen)(v128_t)) {
    return {{widen(a), widen(upper_half(a)), widen(b), widen(upper_half(b))}};
  }
  static v128_t widen_i(v128_t x) { return wasm_f64x2_convert_low_i32x4(x); }
  static v128_t widen_f(v128_t x) { return wasm_f64x2_promote_low_f32x4(x); }
  static D low(I x) { return wide(x.v[0], x.v[1], widen_i); }
  static D high(I x) { return wide(x.v[2], x.v[3], widen_i); }
  static D low(F x) { return wide(x.v[0], x.v[1], widen_f); }
  static D high(F x) { return wide(x.v[2], x.v[3], widen_f); }
  static v128_t both(v128_t a, v128_t b) {
    return wasm_i64x2_shuffle(wasm_f32x4_demote_f64x2_zero(a), wasm_f32x4_demote_f64x2_zero(b), 0, 2);
  }
  static F narrow(D low, D high) {
    return {{both(low.v[0], low.v[1]), both(low.v[2], low.v[3]), both(high.v[0], high.v[1]), both(high.v[2], high.v[3])}};
  }
  static D add(D x, D y) { return each<D>([&](int i) { return wasm_f64x2_add(x.v[i], y.v[i]); }); }
  static D sub(D x, D y) { return each<D>([&](int i) { return wasm_f64x2_sub(x.v[i], y.v[i]); }); }
  static D mul(D x, D y) { return each<D>([&](int i) { return wasm_f64x2_mul(x.v[i], y.v[i]); }); }
  static D fma(D x, D y, D z) { return add(mul(x, y), z); }
  static D max(D x, D y) { return each<D>([&](int i) { return wasm_f64x2_pmax(y.v[i], x.v[i]); }); }
  static D power_of_two(D shifted) {
    return each<D>([&](int i) { return wasm_i64x2_shl(wasm_i64x2_add(shifted.v[i], wasm_i64x2_splat(1023)), 52); });
  }
  static double sum(D x) {
    const v128_t two = wasm_f64x2_add(wasm_f64x2_add(x.v[0], x.v[2]), wasm_f64x2_add(x.v[1], x.v[3]));
    return wasm_f64x2_extract_lane(two, 0) + wasm_f64x2_extract_lane(two, 1);
  }
  static double largest(D x) {
    double all[8];
    store(all, x);
    double most = all[0];
    for (double value : all) most = value > most ? value : most;
    return most;
  }
};

}  // namespace
