// Sums of exponentials over words and cached states, and the mixture; see kernels.hpp.
#pragma once

#include "kernels_common.hpp"

namespace {

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

}  // namespace
