// Scores, probabilities and mixed values of one query; see kernels.hpp.
#pragma once

#include "kernels_common.hpp"

namespace {

// GROUP · 16 tokens at once, so that several sums are computed in parallel.
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
  const auto factors = S::set_d(factor);
  MICRONET_UNROLL
  for (int g = 0; g < GROUP; ++g) {
    double* to = out + g * kLanes;
    Wide<S> sum = widen<S>(sums[g]);
    sum = {S::mul(sum.low, factors), S::mul(sum.high, factors)};
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
  const auto rest = (n - j + kLanes - 1) / kLanes;
  if (rest == 3) scores_i16_group<S, 3>(keys + 2 * j, stride, pairs, query, factor, add, out + j);
  if (rest == 2) scores_i16_group<S, 2>(keys + 2 * j, stride, pairs, query, factor, add, out + j);
  if (rest == 1) scores_i16_group<S, 1>(keys + 2 * j, stride, pairs, query, factor, add, out + j);
}

template <class S>
void scores_f64(const float* keys, int64_t stride, int64_t width, const float* query, int64_t n,
                double factor, bool add, double* out) {
  const auto factors = S::set_d(factor);
  for (int64_t j = 0; j < n; j += kLanes) {
    Wide<S> sum = {S::zero_d(), S::zero_d()};
    for (int64_t d = 0; d < width; ++d)
      sum = wide_fma<S>(widen<S>(S::load(keys + d * stride + j)), S::set_d(query[d]), sum);
    sum = {S::mul(sum.low, factors), S::mul(sum.high, factors)};
    if (add) sum = {S::add(S::load(out + j), sum.low), S::add(S::load(out + j + 8), sum.high)};
    S::store(out + j, sum.low);
    S::store(out + j + 8, sum.high);
  }
}

// QUERIES queries at once: a column of the table is loaded once for all of them.
template <class S, int QUERIES>
inline void scores_of_table(const float* table, int64_t stride, int64_t width, const double* queries, int64_t n,
                            double factor, double* out, int64_t out_stride) {
  const auto factors = S::set_d(factor);
  for (int64_t j = 0; j < n; j += 8) {
    typename S::D sums[QUERIES];
    MICRONET_UNROLL
    for (int q = 0; q < QUERIES; ++q) sums[q] = S::zero_d();
    for (int64_t d = 0; d < width; ++d) {
      const auto column = S::load_wide(table + d * stride + j);
      MICRONET_UNROLL
      for (int q = 0; q < QUERIES; ++q) sums[q] = S::fma(column, S::set_d(queries[q * width + d]), sums[q]);
    }
    MICRONET_UNROLL
    for (int q = 0; q < QUERIES; ++q) S::store(out + q * out_stride + j, S::mul(sums[q], factors));
  }
}

template <class S>
void scores_table(const float* table, int64_t stride, int64_t width, const double* queries, int64_t count, int64_t n,
                  double factor, double* out, int64_t out_stride) {
  int64_t q = 0;
  for (; q + 4 <= count; q += 4)
    scores_of_table<S, 4>(table, stride, width, queries + q * width, n, factor, out + q * out_stride, out_stride);
  for (; q < count; ++q)
    scores_of_table<S, 1>(table, stride, width, queries + q * width, n, factor, out + q * out_stride, out_stride);
}

template <class S>
void scores_f32(const float* keys, int64_t stride, int64_t width, const float* query, int64_t n,
                float factor, bool add, float* out) {
  constexpr int kGroup = 2;
  const auto factors = S::set_f(factor);
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
      const auto sum = S::mul(sums[g], factors);
      S::store(to, add ? S::add(S::load(to), sum) : sum);
    }
  }
  for (; j < n; j += kLanes) {
    auto sum = S::zero_f();
    for (int64_t d = 0; d < width; ++d)
      sum = S::fma(S::load(keys + d * stride + j), S::set_f(query[d]), sum);
    sum = S::mul(sum, factors);
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

// GROUP · 16 columns at once, each with one sum for even pairs and one for odd pairs, to hide latency.
template <class S, int GROUP>
inline void mix_i16_group(const int16_t* values, int64_t pairs, int64_t width, const int16_t* weights, double factor,
                          float* out) {
  typename S::I sums[2][GROUP];
  MICRONET_UNROLL
  for (int g = 0; g < GROUP; ++g) sums[0][g] = sums[1][g] = S::zero_i();
  auto add = [&](int64_t j, typename S::I(&to)[GROUP]) {
    const auto weight = S::pair(weights + 2 * j);
    MICRONET_UNROLL
    for (int g = 0; g < GROUP; ++g) to[g] = S::madd(to[g], S::load_pairs(values + 2 * (j * width + g * kLanes)), weight);
  };
  int64_t j = 0;
  for (; j + 1 < pairs; j += 2) {
    add(j, sums[0]);
    add(j + 1, sums[1]);
  }
  if (j < pairs) add(j, sums[0]);
  const auto factors = S::set_d(factor);
  MICRONET_UNROLL
  for (int g = 0; g < GROUP; ++g) {
    const Wide<S> sum = widen<S>(S::add(sums[0][g], sums[1][g]));
    S::store(out + g * kLanes, S::narrow(S::mul(sum.low, factors), S::mul(sum.high, factors)));
  }
}

template <class S>
void mix_i16(const int16_t* values, int64_t pairs, int64_t width, const int16_t* weights,
             double factor, float* out) {
  int64_t c = 0;
  for (; c + kLanes < width; c += 2 * kLanes)
    mix_i16_group<S, 2>(values + 2 * c, pairs, width, weights, factor, out + c);
  if (c < width) mix_i16_group<S, 1>(values + 2 * c, pairs, width, weights, factor, out + c);
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

}  // namespace
