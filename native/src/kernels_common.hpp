// Code of all kernels. Files compiled for different processors must not share symbols, so everything is in
// an unnamed namespace and nothing of the standard library is instantiated.
#pragma once

#include <cstdint>

#include "kernels.hpp"
#include "transcendental.hpp"

#define MICRONET_UNROLL _Pragma("GCC unroll 16")

namespace {

using micronet::kLanes;

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

}  // namespace
