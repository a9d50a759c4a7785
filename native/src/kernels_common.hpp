// Code shared by all kernel sets. Files compiled for different processors must not share symbols, so everything is
// in an unnamed namespace and no template of the standard library is instantiated.
#pragma once

#include <cstdint>

#include "kernels.hpp"
#include "transcendental.hpp"

#if defined(__wasm__)
#define MICRONET_UNROLL  // left to the compiler: in WebAssembly a small module matters more
#else
#define MICRONET_UNROLL _Pragma("GCC unroll 16")
#endif

namespace {

using micronet::kLanes;

// How many panels or tokens products of floats compute at once, where their speed matters little.
#if defined(__wasm__)
constexpr int kBeside = 1;
#else
constexpr int kBeside = 2;
#endif

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
