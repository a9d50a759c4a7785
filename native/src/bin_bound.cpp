#include "bin_bound.hpp"

#include <algorithm>
#include <cmath>

namespace micronet {

BinBound::BinBound(const Matrix& table, const Buffer<float>& bias) : mean_row_(size_t(table.columns)) {
  const float most = *std::max_element(bias.data(), bias.data() + table.rows);
  std::vector<float> row(size_t(padded(table.columns)));
  std::vector<int16_t> integers(row.size());
  double sum = 0;
  for (int64_t r = 0; r < table.rows; ++r) {
    read_row(table, r, integers.data(), row.data());
    const double weight = std::exp(double(bias[r]) - double(most));
    double square = 0;
    for (size_t c = 0; c < mean_row_.size(); ++c) {
      square += double(row[c]) * double(row[c]);
      mean_row_[c] += weight * double(row[c]);
    }
    sum += weight;
    most_row_ = std::max(most_row_, square);
  }
  most_row_ = std::sqrt(most_row_);
  most_bias_ = double(most);
  bias_sum_ = double(most) + std::log(sum);
  for (double& value : mean_row_) value /= sum;
}

double BinBound::operator()(const Batch& input) const {
  double square = 0, mean = 0;
  for (size_t c = 0; c < mean_row_.size(); ++c) {
    square += double(input.values[c]) * double(input.values[c]);
    mean += mean_row_[c] * double(input.values[c]);
  }
  const double bound = most_bias_ + most_row_ * std::sqrt(square) - (bias_sum_ + mean);
  return bound < 0 ? bound : 0;  // NaN gives 0: then the bin is computed
}

}  // namespace micronet
