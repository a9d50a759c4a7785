// Sums to values, LayerNorm and quantizers; see kernels.hpp.
#pragma once

#include "kernels_common.hpp"

namespace {

// Call compute(first row) for each 16 rows and store the result, cut off at `rows`.
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
inline typename S::F scales_at(const float* scales, int64_t stride, int64_t row) {
  return stride ? S::load(scales + row) : S::set_f(scales[0]);
}

// How sums of integers become values: one class per form, so that each of the two loops below is written once.
template <class S>
struct FinishWhole {
  const int32_t* sums;
  const float* scales;
  int64_t stride;
  float factor;
  const float* bias;
  typename S::F operator()(int64_t r) const {
    const auto factors = S::mul(scales_at<S>(scales, stride, r), S::set_f(factor));
    return S::fma(S::to_float(S::load(sums + r)), factors, bias ? S::load(bias + r) : S::zero_f());
  }
};

template <class S>
struct FinishSplit {
  const int32_t *high, *low;
  const float* scales;
  int64_t stride;
  float high_factor, low_factor;
  const float* bias;
  typename S::F operator()(int64_t r) const {
    const auto large = S::mul(S::to_float(S::load(high + r)), S::set_f(high_factor));
    const auto both = S::fma(S::to_float(S::load(low + r)), S::set_f(low_factor), large);
    return S::fma(both, scales_at<S>(scales, stride, r), bias ? S::load(bias + r) : S::zero_f());
  }
};

// The same for words, whose table has a bias and one scale, which the factors already contain.
template <class S>
struct FinishWords {
  const int32_t *high, *low;
  float high_factor, low_factor;
  const float* bias;
  typename S::F operator()(int64_t r) const {
    const auto small = S::fma(S::to_float(S::load(low + r)), S::set_f(low_factor), S::load(bias + r));
    return S::fma(S::to_float(S::load(high + r)), S::set_f(high_factor), small);
  }
};

template <class S>
void finish_i32(const int32_t* sums, int64_t rows, const float* scales, int64_t stride, float factor,
                const float* bias, float* out) {
  each_panel<S>(rows, out, FinishWhole<S>{sums, scales, stride, factor, bias});
}

template <class S>
void finish_split(const int32_t* high, const int32_t* low, int64_t rows, const float* scales,
                  int64_t stride, float high_factor, float low_factor, const float* bias,
                  float* out) {
  each_panel<S>(rows, out, FinishSplit<S>{high, low, scales, stride, high_factor, low_factor, bias});
}

// The same, and compute the largest value and Σ exp(value − shift) while the values are in registers.
template <class S, class Compute>
inline float finish_and_sum(int64_t rows, float* out, float shift, const void* soon, float* largest,
                            Compute compute) {
  const auto* weights = static_cast<const char*>(soon);
  const float* biases = compute.bias ? compute.bias + rows : out;
  const auto by = S::set_f(shift);  // subtract before scaling: this is exact for values near the largest
  auto sum = S::zero_f(), most = S::set_f(-3.4e38f);
  int64_t r = 0;
  for (; r + kLanes <= rows; r += kLanes) {
    __builtin_prefetch(weights + r / kLanes * 64);
    __builtin_prefetch(biases + r);
    const auto value = compute(r);
    S::store(out + r, value);
    most = S::max(value, most);
    sum = S::add(sum, rough_exponential_f<S>(S::sub(value, by)));
  }
  if (r < rows) {
    float last[kLanes];
    S::store(last, compute(r));
    for (int64_t i = 0; i < kLanes; ++i) {
      if (r + i < rows) out[r + i] = last[i];
      else last[i] = -3.4e38f;
    }
    const auto value = S::load(last);
    most = S::max(value, most);
    sum = S::add(sum, rough_exponential_f<S>(S::sub(value, by)));
  }
  *largest = S::largest(most);
  return S::sum(sum);
}

template <class S>
float finish_i32_exp(const int32_t* sums, int64_t rows, const float* scales, int64_t stride, float factor,
                     const float* bias, float* out, float shift, const void* soon, float* largest) {
  return finish_and_sum<S>(rows, out, shift, soon, largest, FinishWhole<S>{sums, scales, stride, factor, bias});
}

template <class S>
float finish_split_exp(const int32_t* high, const int32_t* low, int64_t rows, const float* scales, int64_t stride,
                       float high_factor, float low_factor, const float* bias, float* out, float shift,
                       const void* soon, float* largest) {
  if (!stride && bias)
    return finish_and_sum<S>(rows, out, shift, soon, largest,
                             FinishWords<S>{high, low, high_factor * *scales, low_factor * *scales, bias});
  return finish_and_sum<S>(rows, out, shift, soon, largest,
                           FinishSplit<S>{high, low, scales, stride, high_factor, low_factor, bias});
}

template <class S>
void finish_f32(const float* sums, int64_t rows, const float* scales, int64_t stride,
                const float* bias, float* out) {
  each_panel<S>(rows, out, [&](int64_t r) {
    auto value = S::load(sums + r);
    if (scales) value = S::mul(value, scales_at<S>(scales, stride, r));
    return bias ? S::add(value, S::load(bias + r)) : value;
  });
}

template <class S>
inline typename S::F scaled_sum(Wide<S> sum, Wide<S> factors, const float* bias) {
  if (!bias) return S::narrow(S::mul(sum.low, factors.low), S::mul(sum.high, factors.high));
  const Wide<S> b = widen<S>(S::load(bias));
  return S::narrow(S::add(S::mul(sum.low, factors.low), b.low),
                   S::add(S::mul(sum.high, factors.high), b.high));
}

template <class S>
void finish_i32_exact(const int32_t* sums, int64_t rows, const float* scales, int64_t stride,
                      double factor, const float* bias, float* out) {
  each_panel<S>(rows, out, [&](int64_t r) {
    Wide<S> factors = widen<S>(scales_at<S>(scales, stride, r));
    factors = {S::mul(factors.low, S::set_d(factor)), S::mul(factors.high, S::set_d(factor))};
    return scaled_sum<S>(widen<S>(S::load(sums + r)), factors, bias ? bias + r : nullptr);
  });
}

template <class S>
void finish_f64(const double* sums, int64_t rows, const float* scales, int64_t stride,
                const float* bias, float* out) {
  each_panel<S>(rows, out, [&](int64_t r) {
    const Wide<S> sum = {S::load(sums + r), S::load(sums + r + 8)};
    const auto scale = scales ? scales_at<S>(scales, stride, r) : S::set_f(1.0f);
    return scaled_sum<S>(sum, widen<S>(scale), bias ? bias + r : nullptr);
  });
}

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

  const auto inverses = S::set_d(inverse);
  for (i = 0; i + kLanes <= n; i += kLanes) {
    const Wide<S> v = widen<S>(S::load(x + i)), g = widen<S>(S::load(gain + i)),
                  b = widen<S>(S::load(bias + i));
    S::store(out + i,
             S::narrow(S::add(S::mul(S::mul(S::sub(v.low, center), inverses), g.low), b.low),
                       S::add(S::mul(S::mul(S::sub(v.high, center), inverses), g.high), b.high)));
  }
  for (; i < n; ++i) out[i] = float((double(x[i]) - mean) * inverse * double(gain[i]) + double(bias[i]));
}

template <class S>
void quantize(const float* x, int64_t n, float inverse, float limit, float scale, int16_t* integers,
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
    S::store(values + i, S::mul(S::to_float(rounded), S::set_f(scale)));
    for (int64_t j = n; j < i + kLanes; ++j) {
      integers[j] = 0;
      values[j] = 0;
    }
  }
}

}  // namespace
