// Insertion of zeros between the non-zeros of a sparse tensor; see kernels.hpp.
#pragma once

#include "kernels_common.hpp"

namespace {

template <class S>
void spread_i16(uint64_t mask, const int16_t* values, int16_t* out) {
  for (int i = 0; i < 64; i += 8, mask >>= 8) {
    const auto bits = uint8_t(mask);
    S::spread8(values, bits, out + i);
    values += __builtin_popcount(bits);
  }
}

}  // namespace
