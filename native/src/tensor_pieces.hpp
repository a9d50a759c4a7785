// A packed tensor's elements in order, in pieces of 64: decoded, checked, and with a sparse tensor's zeros.
#pragma once

#include <cmath>

#include "bitstream.hpp"
#include "coded_stream.hpp"
#include "kernels.hpp"
#include "packed_tensor.hpp"

namespace micronet {

// Checks of stored elements; each throws Failure.
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
  int16_t lowest;  // the one integer of this many bits that is not allowed
  void check(const int16_t* values, int64_t count, bool sparse) const {
    int16_t below = 0, zero = 0;  // as wide as the values, so that the compiler can vectorize
    for (int64_t i = 0; i < count; ++i) {
      below = int16_t(below | (values[i] == lowest));
      zero = int16_t(zero | (values[i] == 0));
    }
    if (below) damaged(name, "an integer below its range");
    if (sparse && zero) damaged(name, "a 0 among its non-zeros");
  }
};

// Write the next value for each set bit of the mask, 0 for the others.
inline void spread(const Kernels& kernels, uint64_t mask, const int16_t* values, int16_t* piece) {
  kernels.spread_i16(mask, values, piece);
}

inline void spread(const Kernels&, uint64_t mask, const float* values, float* piece) {
  for (int i = 0; i < 64; ++i) piece[i] = mask >> i & 1 ? *values++ : 0.0f;
}

// Call put(first element, values, count) for each piece; return the number of non-zeros.
template <class T, class Stream, class Rules, class Put>
int64_t each_piece(const Kernels& kernels, const PackedTensor& tensor, Stream stream, Rules rules, Put put) {
  const bool sparse = tensor.config.sparse();
  int64_t nonzeros = 0;
  T values[64 + 8] = {}, piece[64];  // spread_i16 may read 8 values past the end
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

// The same for a tensor of integers: put(first element, const int16_t* values, count).
template <class Put>
void each_integer_piece(const Kernels& kernels, const PackedTensor& tensor, Put put) {
  const int bits = tensor.config.bits;
  const IntegerRules rules{tensor.name, int16_t(-(1 << (bits - 1)))};
  if (tensor.coded) {  // zeros have short codes: there is no sparse form
    each_piece<int16_t>(kernels, tensor, CodedStream(tensor.content, bits, tensor.elements, tensor.name), rules, put);
    return;
  }
  const IntegerStream stream(tensor.content, bits, tensor.stored(), tensor.name);
  check_form(tensor, each_piece<int16_t>(kernels, tensor, stream, rules, put));
}

// The same for a tensor of floats: put(first element, const float* values, count). The tensors of LayerNorm are
// always dense, so for them `either_form` is false.
template <class Put>
void each_float_piece(const Kernels& kernels, const PackedTensor& tensor, Put put, bool either_form = true) {
  const FloatRules rules{tensor.name};
  const int64_t nonzeros = each_piece<float>(kernels, tensor, FloatStream(tensor.content), rules, put);
  if (either_form) check_form(tensor, nonzeros);
}

}  // namespace micronet
