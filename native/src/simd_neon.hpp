// The operations of simd_scalar.hpp with the NEON of every 64-bit ARM; 16 lanes are four registers.
//
// Results are bit-identical to AVX2's: products are fused with sums, min, max and rounding treat NaN and overflow as
// x86 does, and sums over lanes are added in the same order.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "spread_table.hpp"

namespace {

struct Neon {
  struct I { int32x4_t v[4]; };
  struct F { float32x4_t v[4]; };
  struct D { float64x2_t v[4]; };
  // First and second columns are separate, so that one instruction (SMLAL) adds a product and neighbours need not be
  // summed: rows 0 to 7, then 8 to 15.
  struct P { int16x8_t first[2], second[2]; };
  struct B { int16x8_t a, b; };

  static constexpr int kIntTokens = 4;    // 16 sums of 32 registers
  static constexpr int kFloatTokens = 5;  // 20 sums
  static constexpr int kOneTokenPanels = 4;

  static P load_pairs(const int16_t* p) {
    const int16x8x2_t low = vld2q_s16(p), high = vld2q_s16(p + 16);
    return {{low.val[0], high.val[0]}, {low.val[1], high.val[1]}};
  }
  static P load_pairs(const int8_t* p) {
    const int8x16x2_t all = vld2q_s8(p);
    return {{vmovl_s8(vget_low_s8(all.val[0])), vmovl_high_s8(all.val[0])},
            {vmovl_s8(vget_low_s8(all.val[1])), vmovl_high_s8(all.val[1])}};
  }
  static void store_pairs(int16_t* p, P x) {
    vst2q_s16(p, {{x.first[0], x.second[0]}});
    vst2q_s16(p + 16, {{x.first[1], x.second[1]}});
  }
  static void spread8(const int16_t* values, uint8_t mask, int16_t* out) {
    const uint8x16_t places = vreinterpretq_u8_s8(vld1q_s8(kSpread.places[mask]));
    vst1q_s16(out, vreinterpretq_s16_u8(vqtbl1q_u8(vreinterpretq_u8_s16(vld1q_s16(values)), places)));
  }
  static B pair(const int16_t* p) { return {vld1q_dup_s16(p), vld1q_dup_s16(p + 1)}; }
  // Products of 8 rows: the first four rows belong to sum `a`, the others to sum `b`.
  static void add_products(int32x4_t& a, int32x4_t& b, int16x8_t first, int16x8_t second, B x) {
    a = vmlal_s16(vmlal_s16(a, vget_low_s16(first), vget_low_s16(x.a)), vget_low_s16(second), vget_low_s16(x.b));
    b = vmlal_high_s16(vmlal_high_s16(b, first, x.a), second, x.b);
  }
  static I madd(I acc, P w, B x) {
    add_products(acc.v[0], acc.v[1], w.first[0], w.second[0], x);
    add_products(acc.v[2], acc.v[3], w.first[1], w.second[1], x);
    return acc;
  }
  // 9-bit weights (nines.hpp): the lowest bits of eight pairs, those of the next pair on top of each byte. Rows 0 to 3
  // and 8 to 11 are first, then the others; products use them in this order.
  struct Bits { uint8x16_t first, second; };
  struct Nine {
    int16x8_t first[2], second[2];
    static void in_order(const int16x8_t (&from)[2], int16x8_t (&to)[2]) {
      const int64x2_t a = vreinterpretq_s64_s16(from[0]), b = vreinterpretq_s64_s16(from[1]);
      to[0] = vreinterpretq_s16_s64(vzip1q_s64(a, b));
      to[1] = vreinterpretq_s16_s64(vzip2q_s64(a, b));
    }
    operator P() const {
      P p;
      in_order(first, p.first);
      in_order(second, p.second);
      return p;
    }
  };
  static I madd(I acc, Nine w, B x) {
    add_products(acc.v[0], acc.v[2], w.first[0], w.second[0], x);
    add_products(acc.v[1], acc.v[3], w.first[1], w.second[1], x);
    return acc;
  }
  static Bits load_bits(const uint8_t* p) {
    const uint8x16x2_t all = vld2q_u8(p);
    return {all.val[0], all.val[1]};
  }
  static Bits next_bits(Bits b) { return {vaddq_u8(b.first, b.first), vaddq_u8(b.second, b.second)}; }
  static Bits bits_of_pair(Bits b, int pair) {
    const int8x16_t by = vdupq_n_s8(int8_t(pair));
    return {vshlq_u8(b.first, by), vshlq_u8(b.second, by)};
  }
  static Nine nines_times_128(Bits b, const uint8_t* upper) {
    const uint8x16x2_t bytes = vld2q_u8(upper);
    const uint8x16_t top = vdupq_n_u8(128), first = vandq_u8(b.first, top), second = vandq_u8(b.second, top);
    return {{vreinterpretq_s16_u8(vzip1q_u8(first, bytes.val[0])), vreinterpretq_s16_u8(vzip2q_u8(first, bytes.val[0]))},
            {vreinterpretq_s16_u8(vzip1q_u8(second, bytes.val[1])), vreinterpretq_s16_u8(vzip2q_u8(second, bytes.val[1]))}};
  }
  static Nine divided_by_128(Nine p) {
    return {{vshrq_n_s16(p.first[0], 7), vshrq_n_s16(p.first[1], 7)},
            {vshrq_n_s16(p.second[0], 7), vshrq_n_s16(p.second[1], 7)}};
  }
  static I wide(const int16x8_t (&x)[2]) {
    return {{vmovl_s16(vget_low_s16(x[0])), vmovl_high_s16(x[0]), vmovl_s16(vget_low_s16(x[1])), vmovl_high_s16(x[1])}};
  }
  static I even(P p) { return wide(p.first); }
  static I odd(P p) { return wide(p.second); }

  // An operation on each of four registers.
  template <class V, class Each>
  static V each(Each f) { return V{{f(0), f(1), f(2), f(3)}}; }

  static I zero_i() { return set_i(0); }
  static I set_i(int32_t x) { return each<I>([&](int) { return vdupq_n_s32(x); }); }
  static I load(const int32_t* p) { return each<I>([&](int i) { return vld1q_s32(p + 4 * i); }); }
  static void store(int32_t* p, I x) {
    for (int i = 0; i < 4; ++i) vst1q_s32(p + 4 * i, x.v[i]);
  }
  static void store_narrow(int16_t* p, I x) {  // the values fit in 16 bits
    vst1q_s16(p, vmovn_high_s32(vmovn_s32(x.v[0]), x.v[1]));
    vst1q_s16(p + 8, vmovn_high_s32(vmovn_s32(x.v[2]), x.v[3]));
  }
  static I add(I x, I y) { return each<I>([&](int i) { return vaddq_s32(x.v[i], y.v[i]); }); }
  static I sub(I x, I y) { return each<I>([&](int i) { return vsubq_s32(x.v[i], y.v[i]); }); }
  static I bits_and(I x, I y) { return each<I>([&](int i) { return vandq_s32(x.v[i], y.v[i]); }); }
  static I bits_or(I x, I y) { return each<I>([&](int i) { return vorrq_s32(x.v[i], y.v[i]); }); }
  template <int N> static I shift_left(I x) { return each<I>([&](int i) { return vshlq_n_s32(x.v[i], N); }); }
  template <int N> static I shift_right(I x) {
    return each<I>([&](int i) { return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(x.v[i]), N)); });
  }
  template <int N> static I shift_right_signed(I x) { return each<I>([&](int i) { return vshrq_n_s32(x.v[i], N); }); }
  static F as_float(I x) { return each<F>([&](int i) { return vreinterpretq_f32_s32(x.v[i]); }); }
  static I as_int(F x) { return each<I>([&](int i) { return vreinterpretq_s32_f32(x.v[i]); }); }
  static F to_float(I x) { return each<F>([&](int i) { return vcvtq_f32_s32(x.v[i]); }); }
  static F keep_equal(I x, I y, F v) {
    return each<F>([&](int i) {
      return vreinterpretq_f32_u32(vandq_u32(vceqq_s32(x.v[i], y.v[i]), vreinterpretq_u32_f32(v.v[i])));
    });
  }

  // If one is NaN, the second one, as the instructions of x86 do.
  static float32x4_t more(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
  static float64x2_t more(float64x2_t x, float64x2_t y) { return vbslq_f64(vcgtq_f64(x, y), x, y); }

  static F zero_f() { return set_f(0); }
  static F set_f(float x) { return each<F>([&](int) { return vdupq_n_f32(x); }); }
  static F load(const float* p) { return each<F>([&](int i) { return vld1q_f32(p + 4 * i); }); }
  static void store(float* p, F x) {
    for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, x.v[i]);
  }
  static F add(F x, F y) { return each<F>([&](int i) { return vaddq_f32(x.v[i], y.v[i]); }); }
  static F sub(F x, F y) { return each<F>([&](int i) { return vsubq_f32(x.v[i], y.v[i]); }); }
  static F mul(F x, F y) { return each<F>([&](int i) { return vmulq_f32(x.v[i], y.v[i]); }); }
  static F fma(F x, F y, F z) { return each<F>([&](int i) { return vfmaq_f32(z.v[i], x.v[i], y.v[i]); }); }
  static F max(F x, F y) { return each<F>([&](int i) { return more(x.v[i], y.v[i]); }); }
  static F min(F x, F y) { return each<F>([&](int i) { return vbslq_f32(vcltq_f32(x.v[i], y.v[i]), x.v[i], y.v[i]); }); }
  // Values outside int32, NaN included, become the smallest int32; the instruction alone would give the nearest one
  // or 0.
  static I round(F x) {
    const float32x4_t limit = vdupq_n_f32(2147483648.0f);
    return each<I>([&](int i) {
      return vbslq_s32(vcltq_f32(x.v[i], limit), vcvtnq_s32_f32(x.v[i]), vdupq_n_s32(INT32_MIN));
    });
  }
  static float sum(F x) {
    const float32x4_t quarter = vaddq_f32(vaddq_f32(x.v[0], x.v[2]), vaddq_f32(x.v[1], x.v[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(quarter), vget_high_f32(quarter));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  static float largest(F x) {
    float32x4_t most = more(more(x.v[0], x.v[2]), more(x.v[1], x.v[3]));
    most = more(most, vextq_f32(most, most, 2));
    return vgetq_lane_f32(more(most, vdupq_laneq_f32(most, 1)), 0);
  }

  static D zero_d() { return set_d(0); }
  static D set_d(double x) { return each<D>([&](int) { return vdupq_n_f64(x); }); }
  static D load_wide(const float* p) { return each<D>([&](int i) { return vcvt_f64_f32(vld1_f32(p + 2 * i)); }); }
  static D load(const double* p) { return each<D>([&](int i) { return vld1q_f64(p + 2 * i); }); }
  static void store(double* p, D x) {
    for (int i = 0; i < 4; ++i) vst1q_f64(p + 2 * i, x.v[i]);
  }
  static float64x2_t lower(int32x4_t x) { return vcvtq_f64_s64(vmovl_s32(vget_low_s32(x))); }
  static float64x2_t upper(int32x4_t x) { return vcvtq_f64_s64(vmovl_high_s32(x)); }
  static float64x2_t lower(float32x4_t x) { return vcvt_f64_f32(vget_low_f32(x)); }
  static float64x2_t upper(float32x4_t x) { return vcvt_high_f64_f32(x); }
  static D low(I x) { return {{lower(x.v[0]), upper(x.v[0]), lower(x.v[1]), upper(x.v[1])}}; }
  static D high(I x) { return {{lower(x.v[2]), upper(x.v[2]), lower(x.v[3]), upper(x.v[3])}}; }
  static D low(F x) { return {{lower(x.v[0]), upper(x.v[0]), lower(x.v[1]), upper(x.v[1])}}; }
  static D high(F x) { return {{lower(x.v[2]), upper(x.v[2]), lower(x.v[3]), upper(x.v[3])}}; }
  static float32x4_t both(float64x2_t a, float64x2_t b) { return vcvt_high_f32_f64(vcvt_f32_f64(a), b); }
  static F narrow(D low, D high) {
    return {{both(low.v[0], low.v[1]), both(low.v[2], low.v[3]), both(high.v[0], high.v[1]), both(high.v[2], high.v[3])}};
  }
  static D add(D x, D y) { return each<D>([&](int i) { return vaddq_f64(x.v[i], y.v[i]); }); }
  static D sub(D x, D y) { return each<D>([&](int i) { return vsubq_f64(x.v[i], y.v[i]); }); }
  static D mul(D x, D y) { return each<D>([&](int i) { return vmulq_f64(x.v[i], y.v[i]); }); }
  static D fma(D x, D y, D z) { return each<D>([&](int i) { return vfmaq_f64(z.v[i], x.v[i], y.v[i]); }); }
  static D max(D x, D y) { return each<D>([&](int i) { return more(x.v[i], y.v[i]); }); }
  static D power_of_two(D shifted) {
    return each<D>([&](int i) {
      const int64x2_t bits = vaddq_s64(vreinterpretq_s64_f64(shifted.v[i]), vdupq_n_s64(1023));
      return vreinterpretq_f64_s64(vshlq_n_s64(bits, 52));
    });
  }
  static double sum(D x) {
    const float64x2_t two = vaddq_f64(vaddq_f64(x.v[0], x.v[2]), vaddq_f64(x.v[1], x.v[3]));
    return vgetq_lane_f64(two, 0) + vgetq_lane_f64(two, 1);
  }
  static double largest(D x) {
    const float64x2_t two = more(more(x.v[0], x.v[2]), more(x.v[1], x.v[3]));
    return vgetq_lane_f64(more(two, vdupq_laneq_f64(two, 1)), 0);
  }
};

}  // namespace
