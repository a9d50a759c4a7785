// An upper bound of the probability of a bin's likeliest word, without computing the bin's logits.
//
// Let y be the bin's input. A word's logit is at most max bias + max |row| · |y| (Cauchy–Schwarz). With
// π the softmax of the biases alone, log Σ exp(logit) is at least log Σ exp(bias) + (Σ π row) · y
// (Jensen). The difference bounds log P(word | bin); so does 0.
#pragma once

#include <vector>

#include "linear.hpp"
#include "matrix.hpp"

namespace micronet {

struct BinBound {
  BinBound() = default;
  BinBound(const Matrix& table, const Buffer<float>& bias);

  // Return an upper bound of log P(word | bin), for the one state of `input`.
  double operator()(const Batch& input) const;

 private:
  double most_bias_ = 0, most_row_ = 0, bias_sum_ = 0;
  std::vector<double> mean_row_;  // (columns), weighted by π
};

}  // namespace micronet
