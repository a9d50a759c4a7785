// Products of matrices in panels with states; see kernels.hpp.
#pragma once

#include "kernels_common.hpp"

namespace {

// A slice is the part of a panel that one vector holds: one column of floats, or a pair of columns of
// integers. Slices are numbered through the whole matrix, panel after panel. `Math` defines how a slice is
// loaded and what is summed.

// Compute a tile of PANELS panels and TOKENS tokens, with its sums in registers, beginning at slice `first`.
template <class Math, int PANELS, int TOKENS>
inline void tile(const typename Math::Weight* w, int64_t first, int64_t slices,
                 const typename Math::Input* x, int64_t x_stride, typename Math::Output* out,
                 int64_t out_stride) {
  typename Math::Sum sums[PANELS][TOKENS];
  MICRONET_UNROLL
  for (int p = 0; p < PANELS; ++p) {
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t) sums[p][t] = Math::zero();
  }
  for (int64_t c = 0; c < slices; ++c) {
    typename Math::Column column[PANELS];
    MICRONET_UNROLL
    for (int p = 0; p < PANELS; ++p) column[p] = Math::load(w, first + p * slices + c);
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

// Compute the remaining tokens, fewer than TOKENS.
template <class Math, int TOKENS>
inline void rest(const typename Math::Weight* w, int64_t first, int64_t slices,
                 const typename Math::Input* x, int64_t x_stride, int64_t tokens,
                 typename Math::Output* out, int64_t out_stride) {
  if constexpr (TOKENS > 0) {
    if (tokens == TOKENS) {
      tile<Math, 1, TOKENS>(w, first, slices, x, x_stride, out, out_stride);
    } else {
      rest<Math, TOKENS - 1>(w, first, slices, x, x_stride, tokens, out, out_stride);
    }
  }
}

// Compute PANELS panels for one or two tokens at the speed of memory. The panels are `apart` weights apart,
// because a core reads several distant places faster than one. Only for integers, whose sums do not depend on
// the order.
template <class Math, int TOKENS, int PANELS>
inline void stream(const typename Math::Weight* w, int64_t apart, int64_t slices, const typename Math::Input* x,
                   int64_t x_stride, typename Math::Output* out, int64_t out_apart, int64_t out_stride) {
  typename Math::Sum sums[PANELS][TOKENS];
  MICRONET_UNROLL
  for (int p = 0; p < PANELS; ++p) {
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t) sums[p][t] = Math::zero();
  }
  for (int64_t c = 0; c < slices; ++c) {
    typename Math::Value values[TOKENS];
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t) values[t] = Math::broadcast(x + t * x_stride + c * Math::kColumns);
    MICRONET_UNROLL
    for (int p = 0; p < PANELS; ++p) {
      const typename Math::Column column = Math::load(w + p * apart, c);
      MICRONET_UNROLL
      for (int t = 0; t < TOKENS; ++t) sums[p][t] = Math::multiply_add(sums[p][t], column, values[t]);
    }
  }
  MICRONET_UNROLL
  for (int p = 0; p < PANELS; ++p) {
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t) Math::store(out + p * out_apart + t * out_stride, sums[p][t]);
  }
}

// The same for very narrow matrices: the tokens' values stay in registers for all panels.
template <class Math, int TOKENS, int SLICES>
inline void narrow(const typename Math::Weight* w, int64_t panels, const typename Math::Input* x, int64_t x_stride,
                   typename Math::Output* out, int64_t out_stride) {
  typename Math::Value values[TOKENS][SLICES];
  for (int t = 0; t < TOKENS; ++t)
    for (int c = 0; c < SLICES; ++c) values[t][c] = Math::broadcast(x + t * x_stride + c * Math::kColumns);
  for (int64_t p = 0; p < panels; ++p) {
    typename Math::Sum sums[TOKENS];
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t) sums[t] = Math::zero();
    MICRONET_UNROLL
    for (int c = 0; c < SLICES; ++c) {
      const typename Math::Column column = Math::load(w, p * SLICES + c);
      MICRONET_UNROLL
      for (int t = 0; t < TOKENS; ++t) sums[t] = Math::multiply_add(sums[t], column, values[t][c]);
    }
    MICRONET_UNROLL
    for (int t = 0; t < TOKENS; ++t) Math::store(out + t * out_stride + p * kLanes, sums[t]);
  }
}

// Integer products for one token, or for one token as two halves.
template <class Math, int TOKENS, int PANELS>
void streamed(const typename Math::Weight* w, int64_t panels, int64_t slices, const typename Math::Input* x,
              int64_t x_stride, typename Math::Output* out, int64_t out_stride) {
  if (slices == 1) return narrow<Math, TOKENS, 1>(w, panels, x, x_stride, out, out_stride);
  if (slices == 2) return narrow<Math, TOKENS, 2>(w, panels, x, x_stride, out, out_stride);
  const int64_t size = slices * Math::kSliceWeights, part = panels / PANELS;
  for (int64_t p = 0; p < part; ++p)
    stream<Math, TOKENS, PANELS>(w + p * size, part * size, slices, x, x_stride, out + p * kLanes, part * kLanes,
                                 out_stride);
  for (int64_t p = part * PANELS; p < panels; ++p)
    stream<Math, TOKENS, 1>(w + p * size, 0, slices, x, x_stride, out + p * kLanes, 0, out_stride);
}

template <class Math>
void products(const typename Math::Weight* w, int64_t panel, int64_t panels, int64_t slices,
              const typename Math::Input* x, int64_t x_stride, int64_t tokens,
              typename Math::Output* out, int64_t out_stride) {
  constexpr int kWide = Math::kPanels;  // panels at once for one token: enough sums to hide latency
  if constexpr (Math::kStreamed) {
    const auto* from = w + panel * slices * Math::kSliceWeights;
    if (tokens == 1) return streamed<Math, 1, 4>(from, panels, slices, x, x_stride, out, out_stride);
    if (tokens == 2) return streamed<Math, 2, 2>(from, panels, slices, x, x_stride, out, out_stride);
  }
  int64_t p = 0;
  if (tokens == 1) {
    for (; p + kWide <= panels; p += kWide)
      tile<Math, kWide, 1>(w, (panel + p) * slices, slices, x, x_stride, out + p * kLanes, out_stride);
  } else if constexpr (Math::kTokens > 1) {
    constexpr int kHalf = kWide > 1 ? kWide / 2 : 1;
    for (; tokens == 2 && p + kHalf <= panels; p += kHalf)
      tile<Math, kHalf, 2>(w, (panel + p) * slices, slices, x, x_stride, out + p * kLanes, out_stride);
  }
  for (; p < panels; ++p) {
    const int64_t first = (panel + p) * slices;
    int64_t t = 0;
    for (; t + Math::kTokens <= tokens; t += Math::kTokens)
      tile<Math, 1, Math::kTokens>(w, first, slices, x + t * x_stride, x_stride,
                                   out + t * out_stride + p * kLanes, out_stride);
    rest<Math, Math::kTokens - 1>(w, first, slices, x + t * x_stride, x_stride, tokens - t,
                                  out + t * out_stride + p * kLanes, out_stride);
  }
}

// How a slice's pairs of integers are loaded: from one byte each, or two.
template <class S, class W>
struct Plain {
  using Weight = W;
  static constexpr bool kStreamed = true;
  static constexpr int kSliceWeights = 32;
  static typename S::P load(const W* w, int64_t slice) { return S::load_pairs(w + slice * kSliceWeights); }
};

// Integers times integers.
template <class S, class Stored>
struct Integers {
  using Weight = typename Stored::Weight;
  using Input = int16_t;
  using Output = int32_t;
  using Sum = typename S::I;
  using Column = typename S::P;
  using Value = typename S::B;
  static constexpr bool kStreamed = Stored::kStreamed;
  static constexpr int kSliceWeights = Stored::kSliceWeights, kColumns = 2;
  static constexpr int kTokens = S::kIntTokens, kPanels = S::kOneTokenPanels;
  static Sum zero() { return S::zero_i(); }
  static Column load(const Weight* w, int64_t slice) { return Stored::load(w, slice); }
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
  static constexpr bool kStreamed = false;
  static constexpr int kColumns = 1, kTokens = S::kFloatTokens, kPanels = S::kOneTokenPanels;
  static Sum zero() { return S::zero_f(); }
  static Column load(const float* w, int64_t slice) { return S::load(w + slice * kLanes); }
  static Value broadcast(const float* x) { return S::set_f(*x); }
  static Sum multiply_add(Sum sum, Column w, Value x) { return S::fma(w, x, sum); }
  static void store(float* out, Sum sum) { S::store(out, sum); }
};

// Integers times floats.
template <class S, class Stored>
struct Mixed {
  using Weight = typename Stored::Weight;
  using Input = float;
  using Output = float;
  using Sum = typename S::F;
  struct Column { typename S::F even, odd; };
  struct Value { typename S::F even, odd; };
  static constexpr bool kStreamed = false;
  static constexpr int kColumns = 2, kTokens = kBeside, kPanels = kBeside;
  static Sum zero() { return S::zero_f(); }
  static Column load(const Weight* w, int64_t slice) {
    const typename S::P pairs = Stored::load(w, slice);
    return {S::to_float(S::even(pairs)), S::to_float(S::odd(pairs))};
  }
  static Value broadcast(const float* x) { return {S::set_f(x[0]), S::set_f(x[1])}; }
  static Sum multiply_add(Sum sum, Column w, Value x) {
    return S::fma(w.odd, x.odd, S::fma(w.even, x.even, sum));
  }
  static void store(float* out, Sum sum) { S::store(out, sum); }
};

// Integers or floats times floats, summed in double.
template <class S, class Stored>
struct Exact {
  using Weight = typename Stored::Weight;
  using Input = float;
  using Output = double;
  using Sum = Wide<S>;
  struct Column { Wide<S> even, odd; };
  struct Value { typename S::D even, odd; };
  static constexpr bool kStreamed = false;
  static constexpr int kColumns = 2, kTokens = kBeside, kPanels = 1;
  static Sum zero() { return {S::zero_d(), S::zero_d()}; }
  static Column load(const Weight* w, int64_t slice) {
    const typename S::P pairs = Stored::load(w, slice);
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
  static constexpr bool kStreamed = false;
  static constexpr int kColumns = 1, kTokens = kBeside, kPanels = kBeside;
  static Sum zero() { return {S::zero_d(), S::zero_d()}; }
  static Column load(const float* w, int64_t slice) { return widen<S>(S::load(w + slice * kLanes)); }
  static Value broadcast(const float* x) { return S::set_d(*x); }
  static Sum multiply_add(Sum sum, Column w, Value x) { return wide_fma<S>(w, x, sum); }
  static void store(double* out, Sum sum) {
    S::store(out, sum.low);
    S::store(out + 8, sum.high);
  }
};

}  // namespace
