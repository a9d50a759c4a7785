// Logits of words, and log Σ exp over them, bin by bin.
#pragma once

#include <cmath>
#include <limits>

#include "linear.hpp"
#include "model.hpp"

namespace micronet {

constexpr int64_t kWordBlock = Product::kBlock * kLanes;  // words whose logits are computed at once

// log Σ exp(x) over numbers that come in pieces. `shift` is the largest of some of them.
struct LogSum {
  static constexpr float kFar = 30;  // how far a number may exceed the shift

  float shift = -std::numeric_limits<float>::infinity();
  double sum = 0;

  void add(const Kernels& kernels, const float* x, int64_t n) { add(kernels, x, n, kernels.largest(x, n)); }
  void add(const Kernels& kernels, const float* x, int64_t n, float largest) {
    if (largest > shift) {
      sum *= std::exp(double(shift) - double(largest));
      shift = largest;
    }
    sum += double(kernels.exp_sum(x, n, shift));
  }
  // Write the next rows of a product for one token to `out`; return the largest. If it is not far above the
  // shift, the sum is computed in the same pass.
  float add(const Kernels& kernels, const Product& product, int64_t panel, int64_t rows, const float* bias,
            float* out) {
    float largest = 0;
    const float part = product.rows_and_sum(panel, rows, bias, out, shift, &largest);
    if (largest < shift + kFar) sum += double(part);
    else add(kernels, out, rows, largest);
    return largest;
  }
  float value() const { return float(double(shift) + std::log(sum)); }
};

// Return the states to multiply a bin's table with: the hidden states, or their projection, written to `room`.
Batch bin_input(const Model& model, const Bin& bin, const Batch& hidden, States& room, Scratch& scratch);

// Call visit(first row, rows) for blocks of at most kWordBlock rows of a table.
template <class Visit>
void each_word_block(const Matrix& table, Visit visit) {
  for (int64_t row = 0; row < table.rows; row += kWordBlock)
    visit(row, table.rows - row < kWordBlock ? table.rows - row : kWordBlock);
}

// Throw Failure if a sum is not finite: the weights lead to numbers beyond the range of floats.
void check_finite(float log_sum);

}  // namespace micronet
