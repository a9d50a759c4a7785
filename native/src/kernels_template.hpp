// Every kernel once, over the vectors S of one set of instructions; each kernels_*.cpp makes a
// table of them. Nothing here may be shared between those files (they are compiled for different
// processors): all is in an unnamed namespace and nothing of the standard library is instantiated.
#pragma once

#include <cstdint>

#include "kernels.hpp"
#include "transcendental.hpp"

namespace {

using micronet::kLanes;

constexpr int64_t kAhead = 8192;  // bytes that are fetched before they are needed

#define MICRONET_UNROLL _Pragma("GCC unroll 16")

// ---- products ------------------------------------------------------------------------------

// A tile of PANELS panels and TOKENS tokens, its sums in registers. `Math` tells what is summed.
template <class Math, int PANELS, int TOKENS>
inline void tile(const typename Math::Weight* w, int64_t panel_size, int64_t steps,
                 const typename Math::Input* x, int64_t x_stride, typename Math::Output* out,
                 int64_t out_stride) {
  typename Math::Sum sums[PANELS][TOKENS];
  MICRONET_UNROLL
  for (int p = 0; p < PANELS; ++p) {
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t) sums[p][t] = Math::zero();
  }
  for (int64_t c = 0; c < steps; ++c) {
    typename Math::Column column[PANELS];
    MICRONET_UNROLL
    for (int p = 0; p < PANELS; ++p) column[p] = Math::load(w + p * panel_size + c * Math::kStep);
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t) {
      const typename Math::Value value = Math::broadcast(x + t * x_stride + c * Math::kColumns);
      MICRONET_UNROLL
      for (int p = 0; p < PANELS; ++p) sums[p][t] = Math::multiply_add(sums[p][t], column[p], value);
    }
  }
  MICRONET_UNROLL
  for (int p = 0; p < PANELS; ++p) {
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t) Math::store(out + t * out_stride + p * kLanes, sums[p][t]);
  }
}

// The tokens that are left over, fewer than TOKENS.
template <class Math, int TOKENS>
inline void rest(const typename Math::Weight* w, int64_t panel_size, int64_t steps,
                 const typename Math::Input* x, int64_t x_stride, int64_t tokens,
                 typename Math::Output* out, int64_t out_stride) {
  if constexpr (TOKENS > 0) {
    if (tokens == TOKENS) {
      tile<Math, 1, TOKENS>(w, panel_size, steps, x, x_stride, out, out_stride);
    } else {
      rest<Math, TOKENS - 1>(w, panel_size, steps, x, x_stride, tokens, out, out_stride);
    }
  }
}

// One panel and one or two tokens, as fast as the weights come from memory: they are read in their
// order, and WAYS columns have sums of their own, to hide latency. Only for integers, whose sums do
// not depend on the order.
template <class Math, int TOKENS, int WAYS>
inline void stream(const typename Math::Weight* w, int64_t steps, const typename Math::Input* x, int64_t x_stride,
                   typename Math::Output* out, int64_t out_stride) {
  typename Math::Sum sums[TOKENS][WAYS];
  MICRONET_UNROLL
  for (int t = 0; t < TOKENS; ++t) {
    MICRONET_UNROLL
    for (int i = 0; i < WAYS; ++i) sums[t][i] = Math::zero();
  }
  int64_t c = 0;
  for (; c + WAYS <= steps; c += WAYS) {
    MICRONET_UNROLL
    for (int i = 0; i < WAYS; ++i) {
      const auto* place = w + (c + i) * Math::kStep;
      if (i * sizeof(*place) * Math::kStep % 64 == 0) __builtin_prefetch(place + kAhead / sizeof(*place));
      const typename Math::Column column = Math::load(place);
      MICRONET_UNROLL
      for (int t = 0; t < TOKENS; ++t)
        sums[t][i] = Math::multiply_add(sums[t][i], column, Math::broadcast(x + t * x_stride + (c + i) * Math::kColumns));
    }
  }
  for (; c < steps; ++c) {
    const typename Math::Column column = Math::load(w + c * Math::kStep);
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t)
      sums[t][0] = Math::multiply_add(sums[t][0], column, Math::broadcast(x + t * x_stride + c * Math::kColumns));
  }
  MICRONET_UNROLL
  for (int t = 0; t < TOKENS; ++t) {
    MICRONET_UNROLL
    for (int i = 1; i < WAYS; ++i) sums[t][0] = Math::add(sums[t][0], sums[t][i]);
    Math::store(out + t * out_stride, sums[t][0]);
  }
}

// The same for very narrow matrices: the tokens' values stay in registers from panel to panel.
template <class Math, int TOKENS, int STEPS>
inline void narrow(const typename Math::Weight* w, int64_t panels, const typename Math::Input* x, int64_t x_stride,
                   typename Math::Output* out, int64_t out_stride) {
  typename Math::Value values[TOKENS][STEPS];
  for (int t = 0; t < TOKENS; ++t)
    for (int c = 0; c < STEPS; ++c) values[t][c] = Math::broadcast(x + t * x_stride + c * Math::kColumns);
  for (int64_t p = 0; p < panels; ++p) {
    typename Math::Sum sums[TOKENS];
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t) sums[t] = Math::zero();
    MICRONET_UNROLL
    for (int c = 0; c < STEPS; ++c) {
      const auto* place = w + (p * STEPS + c) * Math::kStep;
      __builtin_prefetch(place + kAhead / sizeof(*place));
      const typename Math::Column column = Math::load(place);
      MICRONET_UNROLL
      for (int t = 0; t < TOKENS; ++t) sums[t] = Math::multiply_add(sums[t], column, values[t][c]);
    }
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t) Math::store(out + t * out_stride + p * kLanes, sums[t]);
  }
}

// Integers for one token, or for one as two halves.
template <class Math, int TOKENS, int WAYS>
void streamed(const typename Math::Weight* w, int64_t panels, int64_t steps, const typename Math::Input* x,
              int64_t x_stride, typename Math::Output* out, int64_t out_stride) {
  if (steps == 1) return narrow<Math, TOKENS, 1>(w, panels, x, x_stride, out, out_stride);
  if (steps == 2) return narrow<Math, TOKENS, 2>(w, panels, x, x_stride, out, out_stride);
  for (int64_t p = 0; p < panels; ++p)
    stream<Math, TOKENS, WAYS>(w + p * steps * Math::kStep, steps, x, x_stride, out + p * kLanes, out_stride);
}

template <class Math>
void products(const typename Math::Weight* w, int64_t panels, int64_t steps,
              const typename Math::Input* x, int64_t x_stride, int64_t tokens,
              typename Math::Output* out, int64_t out_stride) {
  const int64_t panel_size = steps * Math::kStep;
  constexpr int kWide = Math::kPanels;  // panels at once for one token: enough sums to hide latency
  int64_t p = 0;
  if constexpr (Math::kExactSums) {
    if (tokens == 1) return streamed<Math, 1, 4>(w, panels, steps, x, x_stride, out, out_stride);
    if (tokens == 2) return streamed<Math, 2, 2>(w, panels, steps, x, x_stride, out, out_stride);
  }
  if (tokens == 1) {
    for (; p + kWide <= panels; p += kWide)
      tile<Math, kWide, 1>(w + p * panel_size, panel_size, steps, x, x_stride, out + p * kLanes,
                           out_stride);
  } else if (tokens == 2) {
    constexpr int kHalf = kWide > 1 ? kWide / 2 : 1;
    for (; p + kHalf <= panels; p += kHalf)
      tile<Math, kHalf, 2>(w + p * panel_size, panel_size, steps, x, x_stride, out + p * kLanes,
                           out_stride);
  }
  for (; p < panels; ++p) {
    const auto* panel = w + p * panel_size;
    int64_t t = 0;
    for (; t + Math::kTokens <= tokens; t += Math::kTokens)
      tile<Math, 1, Math::kTokens>(panel, panel_size, steps, x + t * x_stride, x_stride,
                                   out + t * out_stride + p * kLanes, out_stride);
    rest<Math, Math::kTokens - 1>(panel, panel_size, steps, x + t * x_stride, x_stride, tokens - t,
                                  out + t * out_stride + p * kLanes, out_stride);
  }
}

// Integers times integers.
template <class S, class W>
struct Integers {
  using Weight = W;
  using Input = int16_t;
  using Output = int32_t;
  using Sum = typename S::I;
  using Column = typename S::P;
  using Value = typename S::B;
  static constexpr bool kExactSums = true;
  static constexpr int kStep = 32, kColumns = 2, kTokens = S::kIntTokens, kPanels = S::kStepPanels;
  static Sum zero() { return S::zero_i(); }
  static Column load(const W* w) { return S::load_pairs(w); }
  static Value broadcast(const int16_t* x) { return S::pair(x); }
  static Sum multiply_add(Sum sum, Column w, Value x) { return S::madd(sum, w, x); }
  static Sum add(Sum a, Sum b) { return S::add(a, b); }
  static void store(int32_t* out, Sum sum) { S::store(out, sum); }
};

// Floats times floats.
template <class S>
struct Floats {
  using Weight = float;
  using Input = float;
  using Output = float;
  using Sum = typename S::F;
  using Column = typename S::F;
  using Value = typename S::F;
  static constexpr bool kExactSums = false;
  static constexpr int kStep = 16, kColumns = 1, kTokens = S::kFloatTokens, kPanels = S::kStepPanels;
  static Sum zero() { return S::zero_f(); }
  static Column load(const float* w) { return S::load(w); }
  static Value broadcast(const float* x) { return S::set_f(*x); }
  static Sum multiply_add(Sum sum, Column w, Value x) { return S::fma(w, x, sum); }
  static void store(float* out, Sum sum) { S::store(out, sum); }
};

// Integers times floats.
template <class S, class W>
struct Mixed {
  using Weight = W;
  using Input = float;
  using Output = float;
  using Sum = typename S::F;
  struct Column { typename S::F even, odd; };
  struct Value { typename S::F even, odd; };
  static constexpr bool kExactSums = false;
  static constexpr int kStep = 32, kColumns = 2, kTokens = 2, kPanels = 2;
  static Sum zero() { return S::zero_f(); }
  static Column load(const W* w) {
    const typename S::P pairs = S::load_pairs(w);
    return {S::to_float(S::even(pairs)), S::to_float(S::odd(pairs))};
  }
  static Value broadcast(const float* x) { return {S::set_f(x[0]), S::set_f(x[1])}; }
  static Sum multiply_add(Sum sum, Column w, Value x) {
    return S::fma(w.odd, x.odd, S::fma(w.even, x.even, sum));
  }
  static void store(float* out, Sum sum) { S::store(out, sum); }
};

// 16 doubles.
template <class S>
struct Wide {
  typename S::D low, high;
};

template <class S>
inline Wide<S> wide_fma(Wide<S> w, typename S::D x, Wide<S> sum) {
  return {S::fma(w.low, x, sum.low), S::fma(w.high, x, sum.high)};
}

template <class S, class V>
inline Wide<S> widen(V v) {
  return {S::low(v), S::high(v)};
}

// Anything times floats, summed in double.
template <class S, class W>
struct Exact {
  using Weight = W;
  using Input = float;
  using Output = double;
  using Sum = Wide<S>;
  struct Column { Wide<S> even, odd; };
  struct Value { typename S::D even, odd; };
  static constexpr bool kExactSums = false;
  static constexpr int kStep = 32, kColumns = 2, kTokens = 2, kPanels = 1;
  static Sum zero() { return {S::zero_d(), S::zero_d()}; }
  static Column load(const W* w) {
    const typename S::P pairs = S::load_pairs(w);
    return {widen<S>(S::even(pairs)), widen<S>(S::odd(pairs))};
  }
  static Value broadcast(const float* x) { return {S::set_d(x[0]), S::set_d(x[1])}; }
  static Sum multiply_add(Sum sum, Column w, Value x) {
    return wide_fma<S>(w.odd, x.odd, wide_fma<S>(w.even, x.even, sum));
  }
  static void store(double* out, Sum sum) {
    S::store(out, sum.low);
    S::store(out + 8, sum.high);
  }
};

template <class S>
struct Exact<S, float> {
  using Weight = float;
  using Input = float;
  using Output = double;
  using Sum = Wide<S>;
  using Column = Wide<S>;
  using Value = typename S::D;
  static constexpr bool kExactSums = false;
  static constexpr int kStep = 16, kColumns = 1, kTokens = 2, kPanels = 2;
  static Sum zero() { return {S::zero_d(), S::zero_d()}; }
  static Column load(const float* w) { return widen<S>(S::load(w)); }
  static Value broadcast(const float* x) { return S::set_d(*x); }
  static Sum multiply_add(Sum sum, Column w, Value x) { return wide_fma<S>(w, x, sum); }
  static void store(double* out, Sum sum) {
    S::store(out, sum.low);
    S::store(out + 8, sum.high);
  }
};

// ---- from sums to values -------------------------------------------------------------------

// Calls compute(first row) for each 16 rows and stores the result, cut off at `rows`.
template <class S, class Compute>
inline void each_panel(int64_t rows, float* out, Compute compute) {
  int64_t r = 0;
  for (; r + kLanes <= rows; r += kLanes) S::store(out + r, compute(r));
  if (r < rows) {
    float last[kLanes];
    S::store(last, compute(r));
    for (int64_t i = r; i < rows; ++i) out[i] = last[i - r];
  }
}

template <class S>
inline typename S::F steps_at(const float* steps, int64_t stride, int64_t row) {
  return stride ? S::load(steps + row) : S::set_f(steps[0]);
}

template <class S>
void finish_i32(const int32_t* sums, int64_t rows, const float* steps, int64_t stride, float factor,
                const float* bias, float* out) {
  each_panel<S>(rows, out, [&](int64_t r) {
    const auto scale = S::mul(steps_at<S>(steps, stride, r), S::set_f(factor));
    return S::fma(S::to_float(S::load(sums + r)), scale, bias ? S::load(bias + r) : S::zero_f());
  });
}

template <class S>
void finish_split(const int32_t* high, const int32_t* low, int64_t rows, const float* steps,
                  int64_t stride, float high_factor, float low_factor, const float* bias,
                  float* out) {
  each_panel<S>(rows, out, [&](int64_t r) {
    const auto large = S::mul(S::to_float(S::load(high + r)), S::set_f(high_factor));
    const auto both = S::fma(S::to_float(S::load(low + r)), S::set_f(low_factor), large);
    return S::fma(both, steps_at<S>(steps, stride, r), bias ? S::load(bias + r) : S::zero_f());
  });
}

template <class S>
void finish_f32(const float* sums, int64_t rows, const float* steps, int64_t stride,
                const float* bias, float* out) {
  each_panel<S>(rows, out, [&](int64_t r) {
    auto value = S::load(sums + r);
    if (steps) value = S::mul(value, steps_at<S>(steps, stride, r));
    return bias ? S::add(value, S::load(bias + r)) : value;
  });
}

template <class S>
inline typename S::F scaled_sum(Wide<S> sum, Wide<S> scale, const float* bias) {
  if (!bias) return S::narrow(S::mul(sum.low, scale.low), S::mul(sum.high, scale.high));
  const Wide<S> b = widen<S>(S::load(bias));
  return S::narrow(S::add(S::mul(sum.low, scale.low), b.low),
                   S::add(S::mul(sum.high, scale.high), b.high));
}

template <class S>
void finish_i32_exact(const int32_t* sums, int64_t rows, const float* steps, int64_t stride,
                      double factor, const float* bias, float* out) {
  each_panel<S>(rows, out, [&](int64_t r) {
    Wide<S> scale = widen<S>(steps_at<S>(steps, stride, r));
    scale = {S::mul(scale.low, S::set_d(factor)), S::mul(scale.high, S::set_d(factor))};
    return scaled_sum<S>(widen<S>(S::load(sums + r)), scale, bias ? bias + r : nullptr);
  });
}

template <class S>
void finish_f64(const double* sums, int64_t rows, const float* steps, int64_t stride,
                const float* bias, float* out) {
  each_panel<S>(rows, out, [&](int64_t r) {
    const Wide<S> sum = {S::load(sums + r), S::load(sums + r + 8)};
    const auto scale = steps ? steps_at<S>(steps, stride, r) : S::set_f(1.0f);
    return scaled_sum<S>(sum, widen<S>(scale), bias ? bias + r : nullptr);
  });
}

// ---- states --------------------------------------------------------------------------------

template <class S>
void layer_norm(const float* x, int64_t n, const float* gain, const float* bias, float* out) {
  Wide<S> sum = {S::zero_d(), S::zero_d()};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Wide<S> v = widen<S>(S::load(x + i));
    sum = {S::add(sum.low, v.low), S::add(sum.high, v.high)};
  }
  double total = S::sum(S::add(sum.low, sum.high));
  for (; i < n; ++i) total += double(x[i]);
  const double mean = total / double(n);

  Wide<S> squares = {S::zero_d(), S::zero_d()};
  const auto center = S::set_d(mean);
  for (i = 0; i + kLanes <= n; i += kLanes) {
    Wide<S> v = widen<S>(S::load(x + i));
    v = {S::sub(v.low, center), S::sub(v.high, center)};
    squares = {S::fma(v.low, v.low, squares.low), S::fma(v.high, v.high, squares.high)};
  }
  double variance = S::sum(S::add(squares.low, squares.high));
  for (; i < n; ++i) variance += (double(x[i]) - mean) * (double(x[i]) - mean);
  const double inverse = 1.0 / __builtin_sqrt(variance / double(n) + 1e-5);

  const auto scale = S::set_d(inverse);
  for (i = 0; i + kLanes <= n; i += kLanes) {
    const Wide<S> v = widen<S>(S::load(x + i)), g = widen<S>(S::load(gain + i)),
                  b = widen<S>(S::load(bias + i));
    S::store(out + i,
             S::narrow(S::add(S::mul(S::mul(S::sub(v.low, center), scale), g.low), b.low),
                       S::add(S::mul(S::mul(S::sub(v.high, center), scale), g.high), b.high)));
  }
  for (; i < n; ++i) out[i] = float((double(x[i]) - mean) * inverse * double(gain[i]) + double(bias[i]));
}

template <class S>
void quantize(const float* x, int64_t n, float inverse, float limit, float step, int16_t* integers,
              float* values) {
  for (int64_t i = 0; i < n; i += kLanes) {
    float last[kLanes] = {};
    const float* from = x + i;
    if (i + kLanes > n) {
      for (int64_t j = i; j < n; ++j) last[j - i] = x[j];
      from = last;
    }
    auto v = S::mul(S::load(from), S::set_f(inverse));
    v = S::min(S::max(v, S::set_f(-limit)), S::set_f(limit));  // NaN becomes −limit
    auto rounded = S::round(v);
    S::store_narrow(integers + i, rounded);
    S::store(values + i, S::mul(S::to_float(rounded), S::set_f(step)));
    for (int64_t j = n; j < i + kLanes; ++j) {
      integers[j] = 0;
      values[j] = 0;
    }
  }
}

// ---- attention -----------------------------------------------------------------------------

// GROUP · 16 tokens at once, so that there are several sums under way.
template <class S, int GROUP>
inline void scores_i16_group(const int16_t* keys, int64_t stride, int64_t pairs,
                             const int16_t* query, double factor, bool add, double* out) {
  typename S::I sums[GROUP];
  MICRONET_UNROLL
  for (int g = 0; g < GROUP; ++g) sums[g] = S::zero_i();
  for (int64_t d = 0; d < pairs; ++d) {
    const auto q = S::pair(query + 2 * d);
    MICRONET_UNROLL
    for (int g = 0; g < GROUP; ++g)
      sums[g] = S::madd(sums[g], S::load_pairs(keys + 2 * (d * stride + g * kLanes)), q);
  }
  const auto scale = S::set_d(factor);
  MICRONET_UNROLL
  for (int g = 0; g < GROUP; ++g) {
    double* to = out + g * kLanes;
    Wide<S> sum = widen<S>(sums[g]);
    sum = {S::mul(sum.low, scale), S::mul(sum.high, scale)};
    if (add) sum = {S::add(S::load(to), sum.low), S::add(S::load(to + 8), sum.high)};
    S::store(to, sum.low);
    S::store(to + 8, sum.high);
  }
}

template <class S>
void scores_i16(const int16_t* keys, int64_t stride, int64_t pairs, const int16_t* query, int64_t n,
                double factor, bool add, double* out) {
  int64_t j = 0;
  for (; j + 3 * kLanes < n; j += 4 * kLanes)
    scores_i16_group<S, 4>(keys + 2 * j, stride, pairs, query, factor, add, out + j);
  for (; j < n; j += kLanes)
    scores_i16_group<S, 1>(keys + 2 * j, stride, pairs, query, factor, add, out + j);
}

template <class S>
void scores_f64(const float* keys, int64_t stride, int64_t width, const float* query, int64_t n,
                double factor, bool add, double* out) {
  const auto scale = S::set_d(factor);
  for (int64_t j = 0; j < n; j += kLanes) {
    Wide<S> sum = {S::zero_d(), S::zero_d()};
    for (int64_t d = 0; d < width; ++d)
      sum = wide_fma<S>(widen<S>(S::load(keys + d * stride + j)), S::set_d(query[d]), sum);
    sum = {S::mul(sum.low, scale), S::mul(sum.high, scale)};
    if (add) sum = {S::add(S::load(out + j), sum.low), S::add(S::load(out + j + 8), sum.high)};
    S::store(out + j, sum.low);
    S::store(out + j + 8, sum.high);
  }
}

template <class S>
void scores_f32(const float* keys, int64_t stride, int64_t width, const float* query, int64_t n,
                float factor, bool add, float* out) {
  constexpr int kGroup = 2;
  const auto scale = S::set_f(factor);
  int64_t j = 0;
  for (; j + kLanes < n; j += kGroup * kLanes) {
    typename S::F sums[kGroup] = {S::zero_f(), S::zero_f()};
    for (int64_t d = 0; d < width; ++d) {
      const auto q = S::set_f(query[d]);
      MICRONET_UNROLL
      for (int g = 0; g < kGroup; ++g)
        sums[g] = S::fma(S::load(keys + d * stride + j + g * kLanes), q, sums[g]);
    }
    MICRONET_UNROLL
    for (int g = 0; g < kGroup; ++g) {
      float* to = out + j + g * kLanes;
      const auto sum = S::mul(sums[g], scale);
      S::store(to, add ? S::add(S::load(to), sum) : sum);
    }
  }
  for (; j < n; j += kLanes) {
    auto sum = S::zero_f();
    for (int64_t d = 0; d < width; ++d)
      sum = S::fma(S::load(keys + d * stride + j), S::set_f(query[d]), sum);
    sum = S::mul(sum, scale);
    S::store(out + j, add ? S::add(S::load(out + j), sum) : sum);
  }
}

template <class S>
void softmax_f64(double* scores, int64_t n, float* out) {
  const int64_t whole = micronet::padded(n);
  for (int64_t j = n; j < whole; ++j) scores[j] = -1e300;
  auto most = S::load(scores);
  for (int64_t j = 8; j < whole; j += 8) most = S::max(most, S::load(scores + j));
  const auto shift = S::set_d(S::largest(most));
  auto sum = S::zero_d();
  for (int64_t j = 0; j < whole; j += 8) {
    const auto e = exponential_d<S>(S::sub(S::load(scores + j), shift));
    S::store(scores + j, e);
    sum = S::add(sum, e);
  }
  const auto inverse = S::set_d(1.0 / S::sum(sum));
  for (int64_t j = 0; j < whole; j += kLanes)
    S::store(out + j, S::narrow(S::mul(S::load(scores + j), inverse),
                                S::mul(S::load(scores + j + 8), inverse)));
}

template <class S>
void softmax_f32(float* scores, int64_t n, float* out) {
  const int64_t whole = micronet::padded(n);
  for (int64_t j = n; j < whole; ++j) scores[j] = -1e30f;
  auto most = S::load(scores);
  for (int64_t j = kLanes; j < whole; j += kLanes) most = S::max(most, S::load(scores + j));
  const auto shift = S::set_f(S::largest(most));
  auto sum = S::zero_f();
  for (int64_t j = 0; j < whole; j += kLanes) {
    const auto e = exponential_f<S>(S::sub(S::load(scores + j), shift));
    S::store(out + j, e);
    sum = S::add(sum, e);
  }
  const auto inverse = S::set_f(1.0f / S::sum(sum));
  for (int64_t j = 0; j < whole; j += kLanes) S::store(out + j, S::mul(S::load(out + j), inverse));
}

template <class S>
void mix_i16(const int16_t* values, int64_t pairs, int64_t width, const int16_t* weights,
             double factor, float* out) {
  const auto scale = S::set_d(factor);
  for (int64_t c = 0; c < width; c += kLanes) {
    auto even = S::zero_i(), odd = S::zero_i();  // two sums, to hide latency
    int64_t j = 0;
    for (; j + 1 < pairs; j += 2) {
      even = S::madd(even, S::load_pairs(values + 2 * (j * width + c)), S::pair(weights + 2 * j));
      odd = S::madd(odd, S::load_pairs(values + 2 * ((j + 1) * width + c)), S::pair(weights + 2 * j + 2));
    }
    if (j < pairs)
      even = S::madd(even, S::load_pairs(values + 2 * (j * width + c)), S::pair(weights + 2 * j));
    const Wide<S> sum = widen<S>(S::add(even, odd));
    S::store(out + c, S::narrow(S::mul(sum.low, scale), S::mul(sum.high, scale)));
  }
}

template <class S>
void mix_f64(const float* values, int64_t n, int64_t width, const float* weights, float* out) {
  for (int64_t c = 0; c < width; c += kLanes) {
    Wide<S> sum = {S::zero_d(), S::zero_d()};
    for (int64_t j = 0; j < n; ++j)
      sum = wide_fma<S>(widen<S>(S::load(values + j * width + c)), S::set_d(weights[j]), sum);
    S::store(out + c, S::narrow(sum.low, sum.high));
  }
}

template <class S>
void mix_f32(const float* values, int64_t n, int64_t width, const float* weights, float* out) {
  for (int64_t c = 0; c < width; c += kLanes) {
    auto even = S::zero_f(), odd = S::zero_f();
    int64_t j = 0;
    for (; j + 1 < n; j += 2) {
      even = S::fma(S::load(values + j * width + c), S::set_f(weights[j]), even);
      odd = S::fma(S::load(values + (j + 1) * width + c), S::set_f(weights[j + 1]), odd);
    }
    if (j < n) even = S::fma(S::load(values + j * width + c), S::set_f(weights[j]), even);
    S::store(out + c, S::add(even, odd));
  }
}

// ---- behind the last quantizer -------------------------------------------------------------

template <class S>
float largest(const float* x, int64_t n) {
  float most = x[0];
  int64_t i = 0;
  if (n >= kLanes) {
    auto m = S::load(x);
    for (i = kLanes; i + kLanes <= n; i += kLanes) m = S::max(S::load(x + i), m);
    most = S::largest(m);
  }
  for (; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

template <class S>
float exp_sum(const float* x, int64_t n, float shift) {
  const auto by = S::set_f(shift);
  auto even = S::zero_f(), odd = S::zero_f();
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    even = S::add(even, rough_exponential_f<S>(S::sub(S::load(x + i), by)));
    odd = S::add(odd, rough_exponential_f<S>(S::sub(S::load(x + i + kLanes), by)));
  }
  for (; i < n; i += kLanes) {
    float last[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) last[j] = i + j < n ? x[i + j] : shift - 1e30f;
    even = S::add(even, rough_exponential_f<S>(S::sub(S::load(last), by)));
  }
  return S::sum(S::add(even, odd));
}

template <class S>
float exp_store(float* x, int64_t n, float shift) {
  const auto by = S::set_f(shift);
  auto sum = S::zero_f();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto e = exponential_f<S>(S::sub(S::load(x + i), by));
    S::store(x + i, e);
    sum = S::add(sum, e);
  }
  if (i < n) {
    float last[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) last[j] = i + j < n ? x[i + j] : shift - 1e30f;
    const auto e = exponential_f<S>(S::sub(S::load(last), by));
    S::store(last, e);
    for (int64_t j = i; j < n; ++j) x[j] = last[j - i];
    sum = S::add(sum, e);
  }
  return S::sum(sum);
}

template <class S>
double exp_weights(const float* x, int64_t n, float shift, double factor, double* out) {
  const auto by = S::set_d(double(shift)), times = S::set_d(factor);
  for (int64_t i = 0; i < n; i += kLanes) {
    float last[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) last[j] = i + j < n ? x[i + j] : shift;
    const Wide<S> v = widen<S>(S::load(last));
    double weights[kLanes];
    S::store(weights, exponential_d<S>(S::mul(S::sub(v.low, by), times)));
    S::store(weights + 8, exponential_d<S>(S::mul(S::sub(v.high, by), times)));
    for (int64_t j = i; j < n && j < i + kLanes; ++j) out[j] = weights[j - i];
  }
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += out[i];
  return sum;
}

template <class S>
float matching_sum(const float* x, const int32_t* words, int64_t n, int32_t word) {
  const auto wanted = S::set_i(word);
  auto sum = S::zero_f();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    sum = S::add(sum, S::keep_equal(S::load(words + i), wanted, S::load(x + i)));
  float rest = 0;
  for (; i < n; ++i) rest += words[i] == word ? x[i] : 0.0f;
  return S::sum(sum) + rest;
}

template <class S>
void subtract(const float* x, int64_t n, float amount, float* out) {
  const auto by = S::set_f(amount);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) S::store(out + i, S::sub(S::load(x + i), by));
  for (; i < n; ++i) out[i] = x[i] - amount;
}

template <class S>
void add_votes(float* x, const float* votes, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    float a[kLanes] = {}, b[kLanes] = {};
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    for (int64_t j = 0; j < count; ++j) {
      a[j] = x[i + j];
      b[j] = votes[i + j];
    }
    // max + log(1 + exp(min − max)): neither the word's own probability nor the votes underflow
    const auto own = S::load(a), cast = logarithm_f<S>(S::load(b));
    const auto most = S::max(own, cast), least = S::min(own, cast);
    const auto more = S::add(S::set_f(1.0f), exponential_f<S>(S::sub(least, most)));
    S::store(a, S::add(most, logarithm_f<S>(more)));
    for (int64_t j = 0; j < count; ++j)
      if (b[j] > 0) x[i + j] = a[j];
  }
}

// ---- the table -----------------------------------------------------------------------------

template <class S>
constexpr micronet::Kernels table(const char* name) {
  return {
      name,
      products<Integers<S, int8_t>>,
      products<Integers<S, int16_t>>,
      products<Floats<S>>,
      products<Exact<S, int8_t>>,
      products<Exact<S, int16_t>>,
      products<Exact<S, float>>,
      products<Mixed<S, int8_t>>,
      products<Mixed<S, int16_t>>,
      finish_i32<S>,
      finish_split<S>,
      finish_f32<S>,
      finish_i32_exact<S>,
      finish_f64<S>,
      layer_norm<S>,
      quantize<S>,
      scores_i16<S>,
      scores_f64<S>,
      scores_f32<S>,
      softmax_f64<S>,
      softmax_f32<S>,
      mix_i16<S>,
      mix_f64<S>,
      mix_f32<S>,
      largest<S>,
      exp_sum<S>,
      exp_store<S>,
      exp_weights<S>,
      matching_sum<S>,
      subtract<S>,
      add_votes<S>,
  };
}

}  // namespace
