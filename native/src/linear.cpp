#include "linear.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace micronet {

namespace {

int64_t largest_of(int bits) { return (int64_t{1} << (bits - 1)) - 1; }

// Two integers of at least this many bits each represent a float well enough.
constexpr int kFewestHalfBits = 12;

// Return the most bits that halves may have so that sums fit in 32 bits.
int half_bits(const Matrix& matrix) {
  int bits = 15;
  while (bits >= kFewestHalfBits &&
         (matrix.largest() << bits) > std::numeric_limits<int32_t>::max() / std::max<int64_t>(matrix.columns, 1))
    --bits;
  return bits;
}

}  // namespace

bool sums_fit(int a_bits, int b_bits, int64_t terms) {
  return terms <= std::numeric_limits<int32_t>::max() / (largest_of(a_bits) * largest_of(b_bits));
}

void States::resize(int64_t tokens_, int64_t columns_) {
  tokens = tokens_;
  columns = columns_;
  stride = padded(columns_);
  values = Buffer<float>(tokens * stride);
  integers = Buffer<int16_t>(tokens * stride);
}

Batch States::batch(int64_t count) const {
  return {count, columns, stride, values.data(), quantized ? integers.data() : nullptr, scale, bits};
}

void States::quantize(const Kernels& kernels, const Quantizer& quantizer, int64_t count) {
  quantized = quantizer.on;
  if (!quantizer.on) return;
  scale = quantizer.scale;
  bits = quantizer.bits;
  if (quantizer.scale == 0) {  // 0 times an infinite value would not be 0
    std::fill_n(values.data(), count * stride, 0.0f);
    std::fill_n(integers.data(), count * stride, int16_t{0});
    return;
  }
  for (int64_t t = 0; t < count; ++t)
    kernels.quantize(row(t), columns, quantizer.inverse, quantizer.limit, quantizer.scale,
                     integer_row(t), row(t));
}

Product::Product(const Kernels& kernels, const Matrix& matrix, const Batch& batch, bool exact,
                 Scratch& scratch)
    : kernels_(kernels), matrix_(matrix), batch_(batch), exact_(exact), scratch_(scratch) {
  const int64_t room = batch.tokens * kBlock * kLanes;
  if (matrix.integers() && batch.integers && sums_fit(matrix.bits, batch.bits, matrix.columns)) {
    way_ = Way::kIntegers;
  } else if (exact) {
    way_ = Way::kExact;
  } else if (!matrix.integers()) {
    way_ = Way::kFloats;
  } else {
    half_bits_ = half_bits(matrix);
    way_ = half_bits_ >= kFewestHalfBits ? Way::kHalves : Way::kMixed;
  }
  if (way_ == Way::kExact) scratch.exact_sums.at_least(room);
  else if (way_ == Way::kFloats || way_ == Way::kMixed) scratch.float_sums.at_least(room);
  else scratch.sums.at_least(way_ == Way::kHalves ? 2 * room : room);
  if (way_ == Way::kHalves) split();
}

// Split each state into two rows of integers: x = (high · 2^bits + low) · factor, with an error of at most
// 2^-(2 bits) of the state's largest value.
void Product::split() {
  scratch_.halves.at_least(2 * batch_.tokens * batch_.stride);
  scratch_.factors.at_least(2 * batch_.tokens);
  const double most = double((int64_t{1} << half_bits_) - 1), part = double(int64_t{1} << half_bits_);
  for (int64_t t = 0; t < batch_.tokens; ++t) {
    const float* x = batch_.values + t * batch_.stride;
    int16_t* high = scratch_.halves.data() + 2 * t * batch_.stride;
    int16_t* low = high + batch_.stride;
    float size = 0;
    bool finite = true;
    for (int64_t c = 0; c < batch_.columns; ++c) {
      size = std::max(size, std::fabs(x[c]));
      finite = finite && std::isfinite(x[c]);
    }
    const double factor = double(size) / most;
    const double inverse = size > 0 && finite ? 1.0 / factor : 0.0;
    for (int64_t c = 0; c < batch_.stride; ++c) {
      const double scaled = c < batch_.columns && finite ? double(x[c]) * inverse : 0.0;
      const double whole = std::nearbyint(scaled);
      high[c] = int16_t(whole);
      low[c] = int16_t(std::nearbyint((scaled - whole) * part));
    }
    // Keep non-finite states visible: as integers they would become zeros.
    scratch_.factors[2 * t] = finite ? float(factor) : std::numeric_limits<float>::quiet_NaN();
    scratch_.factors[2 * t + 1] = float(factor / part);
  }
}

void Product::integer_sums(int64_t panel, int64_t panels) const {
  const bool halves = way_ == Way::kHalves;
  const int16_t* x = halves ? scratch_.halves.data() : batch_.integers;
  const int64_t inputs = halves ? 2 * batch_.tokens : batch_.tokens;
  const int64_t pairs = matrix_.pairs(), stride = panels * kLanes;
  int32_t* sums = scratch_.sums.data();
  if (matrix_.bits <= 8)
    kernels_.products_i8(matrix_.bytes.data(), panel, panels, pairs, x, batch_.stride, inputs, sums, stride);
  else if (matrix_.bits == 9)
    kernels_.products_i9(matrix_.nines.data(), panel, panels, pairs, x, batch_.stride, inputs,
                         halves ? 16 : batch_.bits, sums, stride);
  else
    kernels_.products_i16(matrix_.shorts.data(), panel, panels, pairs, x, batch_.stride, inputs, sums, stride);
}

void Product::rows(int64_t panel, int64_t panels, const float* bias, float* out,
                   int64_t out_stride) const {
  const int64_t row = panel * kLanes, stride = panels * kLanes, tokens = batch_.tokens;
  const int64_t count = std::min(stride, matrix_.rows - row);
  const float* scales = matrix_.integers() ? matrix_.scales_at(row) : nullptr;
  const int64_t scale_stride = matrix_.scale_stride, pairs = matrix_.pairs();
  const int32_t* sums = scratch_.sums.data();
  float* float_sums = scratch_.float_sums.data();
  double* exact_sums = scratch_.exact_sums.data();
  const bool bytes = matrix_.bits <= 8, nines = matrix_.bits == 9;
  switch (way_) {
    case Way::kIntegers:
    case Way::kHalves:
      integer_sums(panel, panels);
      for (int64_t t = 0; t < tokens; ++t) {
        float* to = out + t * out_stride;
        if (way_ == Way::kHalves)
          kernels_.finish_split(sums + 2 * t * stride, sums + (2 * t + 1) * stride, count, scales, scale_stride,
                                scratch_.factors[2 * t], scratch_.factors[2 * t + 1], bias, to);
        else if (exact_)
          kernels_.finish_i32_exact(sums + t * stride, count, scales, scale_stride, double(batch_.scale), bias, to);
        else
          kernels_.finish_i32(sums + t * stride, count, scales, scale_stride, batch_.scale, bias, to);
      }
      return;
    case Way::kExact:
      if (!matrix_.integers())
        kernels_.exact_f32(matrix_.floats.data(), panel, panels, matrix_.columns, batch_.values,
                           batch_.stride, tokens, exact_sums, stride);
      else if (bytes)
        kernels_.exact_i8(matrix_.bytes.data(), panel, panels, pairs, batch_.values, batch_.stride, tokens,
                          exact_sums, stride);
      else if (nines)
        kernels_.exact_i9(matrix_.nines.data(), panel, panels, pairs, batch_.values, batch_.stride, tokens,
                          exact_sums, stride);
      else
        kernels_.exact_i16(matrix_.shorts.data(), panel, panels, pairs, batch_.values, batch_.stride, tokens,
                           exact_sums, stride);
      for (int64_t t = 0; t < tokens; ++t)
        kernels_.finish_f64(exact_sums + t * stride, count, scales, scale_stride, bias, out + t * out_stride);
      return;
    case Way::kMixed:
      if (bytes)
        kernels_.mixed_i8(matrix_.bytes.data(), panel, panels, pairs, batch_.values, batch_.stride, tokens,
                          float_sums, stride);
      else if (nines)
        kernels_.mixed_i9(matrix_.nines.data(), panel, panels, pairs, batch_.values, batch_.stride, tokens,
                          float_sums, stride);
      else
        kernels_.mixed_i16(matrix_.shorts.data(), panel, panels, pairs, batch_.values, batch_.stride, tokens,
                           float_sums, stride);
      break;
    case Way::kFloats:
      kernels_.products_f32(matrix_.floats.data(), panel, panels, matrix_.columns, batch_.values,
                            batch_.stride, tokens, float_sums, stride);
      break;
  }
  for (int64_t t = 0; t < tokens; ++t)
    kernels_.finish_f32(float_sums + t * stride, count, scales, scale_stride, bias, out + t * out_stride);
}

float Product::rows_and_sum(int64_t panel, int64_t count, const float* bias, float* out, float shift,
                            float* largest) const {
  const int64_t panels = padded(count) / kLanes, row = panel * kLanes;
  if (way_ != Way::kIntegers && way_ != Way::kHalves) {
    rows(panel, panels, bias, out, 0);
    *largest = kernels_.largest(out, count);
    return kernels_.exp_sum(out, count, shift);
  }
  integer_sums(panel, panels);
  const int32_t* sums = scratch_.sums.data();
  const void* soon = matrix_.place_of_panel(panel + panels);
  if (way_ == Way::kHalves)
    return kernels_.finish_split_exp(sums, sums + panels * kLanes, count, matrix_.scales_at(row), matrix_.scale_stride,
                                     scratch_.factors[0], scratch_.factors[1], bias, out, shift, soon, largest);
  return kernels_.finish_i32_exp(sums, count, matrix_.scales_at(row), matrix_.scale_stride, batch_.scale, bias, out,
                                 shift, soon, largest);
}

void Product::all(const float* bias, float* out, int64_t out_stride) const {
  // Many tokens: small blocks, so that weights and sums stay in the processor's cache. One token: large blocks, so
  // that the places that are read at once lie far apart.
  const int64_t block = batch_.tokens == 1 ? kBlock : 16;
  for (int64_t panel = 0; panel < matrix_.panels(); panel += block)
    rows(panel, std::min(block, matrix_.panels() - panel), bias ? bias + panel * kLanes : nullptr,
         out + panel * kLanes, out_stride);
}

}  // namespace micronet
