// Products of a matrix with states: in integers, doubles or floats, as the bits and docs/arithmetic.md require.
#pragma once

#include "buffer.hpp"
#include "kernels.hpp"
#include "matrix.hpp"
#include "quantizer.hpp"

namespace micronet {

// States of some tokens: values and, where they are quantized, integers with their scale.
struct Batch {
  int64_t tokens = 0, columns = 0, stride = 0;
  const float* values = nullptr;      // (tokens, stride), zeros up to a multiple of 16
  const int16_t* integers = nullptr;  // (tokens, stride), null where not quantized
  float scale = 0;
  int bits = 0;

  Batch part(int64_t from, int64_t count) const {
    Batch b = *this;
    b.tokens = count;
    b.values += from * stride;
    if (b.integers) b.integers += from * stride;
    return b;
  }
};

// States that own their memory, with room for integers.
struct States {
  int64_t columns = 0, stride = 0, tokens = 0;
  Buffer<float> values;
  Buffer<int16_t> integers;
  bool quantized = false;
  float scale = 0;
  int bits = 0;

  void resize(int64_t tokens_, int64_t columns_);
  float* row(int64_t t) { return values.data() + t * stride; }
  int16_t* integer_row(int64_t t) { return integers.data() + t * stride; }
  Batch batch(int64_t count) const;
  // Quantize `count` rows in place, if the quantizer is on.
  void quantize(const Kernels& kernels, const Quantizer& quantizer, int64_t count);
};

// Return whether a sum of `terms` products of a-bit with b-bit integers fits in 32 bits.
bool sums_fit(int a_bits, int b_bits, int64_t terms);

// Temporary memory for sums and for converted inputs.
struct Scratch {
  Buffer<int32_t> sums;
  Buffer<float> float_sums;
  Buffer<double> exact_sums;
  Buffer<int16_t> halves;
  Buffer<float> factors;
};

// The product of one matrix and one batch, computed in parts on request.
class Product {
 public:
  static constexpr int64_t kBlock = 64;  // panels per call at most

  // `exact`: computed to within 1e-14, then rounded once (rule 2 of docs/arithmetic.md); else plain fp32 (rule 3).
  Product(const Kernels& kernels, const Matrix& matrix, const Batch& batch, bool exact, Scratch& scratch);

  // Compute the rows of `panels` ≤ kBlock panels, beginning at row 16 · panel: out[t][r] = matrix row · state t
  // + bias, cut off at the matrix's last row. bias: points to the first of these rows, or null.
  void rows(int64_t panel, int64_t panels, const float* bias, float* out, int64_t out_stride) const;
  // The same for one token and `count` ≤ 16 · kBlock rows, with their largest value and Σ exp(value − shift).
  // The sum is meaningless if a value is far above the shift.
  float rows_and_sum(int64_t panel, int64_t count, const float* bias, float* out, float shift, float* largest) const;
  // Compute all rows.
  void all(const float* bias, float* out, int64_t out_stride) const;

 private:
  enum class Way { kIntegers, kHalves, kExact, kMixed, kFloats };
  void split();
  // Compute sums of integers into the scratch memory: (inputs, 16 · panels); each half of a state is one input.
  void integer_sums(int64_t panel, int64_t panels) const;

  const Kernels& kernels_;
  const Matrix& matrix_;
  Batch batch_;
  bool exact_;
  Scratch& scratch_;
  Way way_;
  int half_bits_ = 0;
};

}  // namespace micronet
