// A matrix times states, in integers, doubles or floats as their bits and docs/arithmetic.md allow.
#pragma once

#include "buffer.hpp"
#include "kernels.hpp"
#include "matrix.hpp"
#include "quantizer.hpp"

namespace micronet {

// States of some tokens: values, and integers with their scale where they are quantized.
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

// States with room for their integers.
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
  // Quantizes `count` rows in place, where the place is quantized.
  void quantize(const Kernels& kernels, const Quantizer& quantizer, int64_t count);
};

// Whether a sum of `terms` products of integers of a and b bits fits 32 bits.
bool sums_fit(int a_bits, int b_bits, int64_t terms);

// Room for sums and for inputs in another form.
struct Scratch {
  Buffer<int32_t> sums;
  Buffer<float> float_sums;
  Buffer<double> exact_sums;
  Buffer<int16_t> halves;
  Buffer<float> factors;
};

// One matrix and one batch, prepared so that parts of the product can be asked for.
class Product {
 public:
  static constexpr int64_t kBlock = 64;  // panels per call at most

  // `exact`: within 1e-14, then rounded once (rule 2); else ordinary fp32 (rule 3).
  Product(const Kernels& kernels, const Matrix& matrix, const Batch& batch, bool exact, Scratch& scratch);

  // Rows from 16 · panel on: out[t][r] = matrix row · state t + bias, for `panels` ≤ kBlock panels,
  // cut off at the matrix's last row. bias: of the first of these rows, or null.
  void rows(int64_t panel, int64_t panels, const float* bias, float* out, int64_t out_stride) const;
  // The same for one token: `count` ≤ 16 · kBlock rows, their largest value, and Σ exp(value − shift).
  // The sum means nothing where a value is far above the shift.
  float rows_and_sum(int64_t panel, int64_t count, const float* bias, float* out, float shift, float* largest) const;
  // All rows.
  void all(const float* bias, float* out, int64_t out_stride) const;

 private:
  enum class Way { kIntegers, kHalves, kExact, kMixed, kFloats };
  void split();
  // Sums of integers into the scratch room: (inputs, 16 · panels), each half of a state an input.
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
