// A packed tensor's elements in their order, in pieces of 64: decoded, checked, and with the zeros that a
// sparse tensor's mask leaves out.
#pragma once

#include <cmath>

#include "bitstream.hpp"
#include "kernels.hpp"
#include "packed_tensor.hpp"

namespace micronet {

// What stored elements must not be; each check throws Failure.
struct FloatRules {
  const std::string& name;
  void check(const float* values, int64_t count, bool sparse) const {
    for (int64_t i = 0; i < count; ++i) {
      if (!std::isfinite(values[i])) damaged(name, "a value that is not finite");
      if (sparse && values[i] == 0) damaged(name, "a 0 among its non-zeros");
    }
  }
};

struct IntegerRules {
  const std::string& name;
  int16_t lowest;  // the one integer of these bits that is not allowed
  void check(const int16_t* values, int64_t count, bool sparse) const {
    int16_t below = 0, zero = 0;  // of the values' size, so that several are compared at once
    for (int64_t i = 0; i < count; ++i) {
      below = int16_t(below | (values[i] == lowest));
      zero = int16_t(zero | (values[i] == 0));
    }
    if (below) damaged(name, "an integer below its range");
    if (sparse && zero) damaged(name, "a 0 among its non-zeros");
  }
};

// The next value for each bit of the mask that is set, 0 for the others.
inline void spread(const Kernels& kernels, uint64_t mask, const int16_t* values, int16_t* piece) {
  kernels.spread_i16(mask, values, piece);
}

inline void spread(const Kernels&, uint64_t mask, const float* values, float* piece) {
  for (int i = 0; i < 64; ++i) piece[i] = mask >> i & 1 ? *values++ : 0.0f;
}

// Calls put(first element, values, count) for each piece; gives the non-zeros.
template <class T, class Stream, class Rules, class Put>
int64_t each_piece(const Kernels& kernels, const PackedTensor& tensor, Stream stream, Rules rules, Put put) {
  const bool sparse = tensor.config.sparse();
  int64_t nonzeros = 0;
  T values[64 + 8] = {}, piece[64];  // spread_i16 may read 8 values more
  for (int64_t at = 0; at < tensor.elements; at += 64) {
    const int64_t count = tensor.elements - at < 64 ? tensor.elements - at : 64;
    const uint64_t mask = sparse ? mask_word(tensor.mask, at) : 0;
    const int64_t stored = sparse ? __builtin_popcountll(mask) : count;
    stream.next(values, stored);
    rules.check(values, stored, sparse);
    if (sparse) {
      spread(kernels, mask, values, piece);
      put(at, piece, count);
    } else {
      for (int64_t i = 0; i < count; ++i) nonzeros += values[i] != 0;
      put(at, values, count);
    }
  }
  return sparse ? tensor.config.nonzeros : nonzeros;
}

// Of a tensor of integers: put(first element, const int16_t* values, count).
template <class Put>
void each_integer_piece(const Kernels& kernels, const PackedTensor& tensor, Put put) {
  const int bits = tensor.config.bits;
  const IntegerStream stream(tensor.content, bits, tensor.stored(), tensor.name);
  const IntegerRules rules{tensor.name, int16_t(-(1 << (bits - 1)))};
  check_form(tensor, each_piece<int16_t>(kernels, tensor, stream, rules, put));
}

// Of a tensor of floats: put(first element, const float* values, count). LayerNorm's tensors are dense
// whatever they hold: theirs is not `either_form`.
template <class Put>
void each_float_piece(const Kernels& kernels, const PackedTensor& tensor, Put put, bool either_form = true) {
  const FloatRules rules{tensor.name};
  const int64_t nonzeros = each_piece<float>(kernels, tensor, FloatStream(tensor.content), rules, put);
  if (either_form) check_form(tensor, nonzeros);
}

}  // namespace micronet
