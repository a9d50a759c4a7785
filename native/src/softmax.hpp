// The words' logits and log Σ exp over them, bin by bin.
#pragma once

#include <cmath>
#include <limits>

#include "linear.hpp"
#include "model.hpp"

namespace micronet {

constexpr int64_t kWordBlock = Product::kBlock * kLanes;  // words whose logits are computed at once

// log Σ exp(x) over numbers that come in pieces.
struct LogSum {
  float most = -std::numeric_limits<float>::infinity();
  double sum = 0;

  void add(const Kernels& kernels, const float* x, int64_t n) { add(kernels, x, n, kernels.largest(x, n)); }
  void add(const Kernels& kernels, const float* x, int64_t n, float largest) {
    if (largest > most) {
      sum *= std::exp(double(most) - double(largest));
      most = largest;
    }
    sum += double(kernels.exp_sum(x, n, most));
  }
  float value() const { return float(double(most) + std::log(sum)); }
};

// The states that a bin's table is multiplied with: the hidden ones, or projected into `room`.
Batch bin_input(const Model& model, const Bin& bin, const Batch& hidden, States& room, Scratch& scratch);

// Computes the logits of all rows of a table in blocks of at most kWordBlock rows, and hands each
// token's block to visit(token, first row, rows, logits). With `keep`, out is (tokens, stride) for
// all rows; else it is room for one block, (tokens, kWordBlock).
template <class Visit>
void each_logit_block(const Kernels& kernels, const Matrix& table, const Buffer<float>& bias, const Batch& input,
                      Scratch& scratch, bool keep, float* out, int64_t stride, Visit visit) {
  const Product product(kernels, table, input, false, scratch);
  for (int64_t row = 0; row < table.rows; row += kWordBlock) {
    const int64_t rows = table.rows - row < kWordBlock ? table.rows - row : kWordBlock;
    float* to = keep ? out + row : out;
    product.rows(row / kLanes, padded(rows) / kLanes, bias.data() + row, to, stride);
    for (int64_t t = 0; t < input.tokens; ++t) visit(t, row, rows, to + t * stride);
  }
}

// Refuses a sum that is not finite: some weight is beyond what floats can hold.
void check_finite(float log_sum);

}  // namespace micronet
