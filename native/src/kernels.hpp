// A kernel set: the inner loops for one instruction set, as a table of functions.
//
// Matrices are stored in panels of 16 rows (matrix.hpp). Every output is summed over the columns in
// order, whatever the number of tokens or panels in a call. So a token's results depend neither on
// which tokens are computed with it nor on the number of threads.
#pragma once

#include <cstdint>

namespace micronet {

constexpr int64_t kLanes = 16;

constexpr int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
constexpr int64_t padded(int64_t n) { return round_up(n, kLanes); }

struct Kernels {
  const char* name;

  // Compute the products of panels panel … panel + panels - 1. weights: the whole matrix, (panels, pairs,
  // 16, 2) integers, 9 bits as in nines.hpp, or (panels, columns, 16) floats; x: (tokens, x_stride);
  // out: (tokens, out_stride), of which 16 · panels are written per row. The caller checks that sums of
  // integers fit in 32 bits.
  void (*products_i8)(const int8_t* weights, int64_t panel, int64_t panels, int64_t pairs, const int16_t* x,
                      int64_t x_stride, int64_t tokens, int32_t* out, int64_t out_stride);
  // x_bits: the bits of the inputs; inputs of at most 9 bits are multiplied faster.
  void (*products_i9)(const uint8_t* weights, int64_t panel, int64_t panels, int64_t pairs, const int16_t* x,
                      int64_t x_stride, int64_t tokens, int x_bits, int32_t* out, int64_t out_stride);
  void (*products_i16)(const int16_t* weights, int64_t panel, int64_t panels, int64_t pairs, const int16_t* x,
                       int64_t x_stride, int64_t tokens, int32_t* out, int64_t out_stride);
  void (*products_f32)(const float* weights, int64_t panel, int64_t panels, int64_t columns, const float* x,
                       int64_t x_stride, int64_t tokens, float* out, int64_t out_stride);
  // The same with float inputs, summed in double: each product is exact.
  void (*exact_i8)(const int8_t* weights, int64_t panel, int64_t panels, int64_t pairs, const float* x,
                   int64_t x_stride, int64_t tokens, double* out, int64_t out_stride);
  void (*exact_i9)(const uint8_t* weights, int64_t panel, int64_t panels, int64_t pairs, const float* x,
                   int64_t x_stride, int64_t tokens, double* out, int64_t out_stride);
  void (*exact_i16)(const int16_t* weights, int64_t panel, int64_t panels, int64_t pairs, const float* x,
                    int64_t x_stride, int64_t tokens, double* out, int64_t out_stride);
  void (*exact_f32)(const float* weights, int64_t panel, int64_t panels, int64_t columns, const float* x,
                    int64_t x_stride, int64_t tokens, double* out, int64_t out_stride);
  // The same with float inputs, summed in float.
  void (*mixed_i8)(const int8_t* weights, int64_t panel, int64_t panels, int64_t pairs, const float* x,
                   int64_t x_stride, int64_t tokens, float* out, int64_t out_stride);
  void (*mixed_i9)(const uint8_t* weights, int64_t panel, int64_t panels, int64_t pairs, const float* x,
                   int64_t x_stride, int64_t tokens, float* out, int64_t out_stride);
  void (*mixed_i16)(const int16_t* weights, int64_t panel, int64_t panels, int64_t pairs, const float* x,
                    int64_t x_stride, int64_t tokens, float* out, int64_t out_stride);

  // Turn sums into values, for `rows` rows: sum · scale of the row · factor + bias. Sums, scales and
  // biases may be read up to the next multiple of 16; `out` is written for `rows` rows only.
  // scale_stride: 1 for one scale per row, 0 for one scale in all; bias may be null.
  void (*finish_i32)(const int32_t* sums, int64_t rows, const float* scales, int64_t scale_stride,
                     float factor, const float* bias, float* out);
  void (*finish_split)(const int32_t* high, const int32_t* low, int64_t rows, const float* scales,
                       int64_t scale_stride, float high_factor, float low_factor, const float* bias,
                       float* out);
  // The same two for words: also store the largest value and return Σ exp(value − shift). They prefetch the data
  // that is needed next: 64 bytes of `soon` per 16 rows, and the biases after these.
  float (*finish_i32_exp)(const int32_t* sums, int64_t rows, const float* scales, int64_t scale_stride,
                          float factor, const float* bias, float* out, float shift, const void* soon,
                          float* largest);
  float (*finish_split_exp)(const int32_t* high, const int32_t* low, int64_t rows, const float* scales,
                            int64_t scale_stride, float high_factor, float low_factor, const float* bias,
                            float* out, float shift, const void* soon, float* largest);
  void (*finish_f32)(const float* sums, int64_t rows, const float* scales, int64_t scale_stride,
                     const float* bias, float* out);
  // The same in double, rounded once.
  void (*finish_i32_exact)(const int32_t* sums, int64_t rows, const float* scales,
                           int64_t scale_stride, double factor, const float* bias, float* out);
  void (*finish_f64)(const double* sums, int64_t rows, const float* scales, int64_t scale_stride,
                     const float* bias, float* out);

  // (x − mean) / √(variance + 1e-5) · gain + bias in double, rounded once.
  void (*layer_norm)(const float* x, int64_t n, const float* gain, const float* bias, float* out);
  // Write integers clamp(rint(x · inverse), ±limit) and their values, padded with zeros to a multiple of 16.
  void (*quantize)(const float* x, int64_t n, float inverse, float limit, float scale,
                   int16_t* integers, float* values);

  // Attention of one query. keys: (pairs, stride, 2) or (width, stride), one column per token;
  // out[j] (+)= factor · q · key_j for n tokens, written up to a multiple of 16.
  void (*scores_i16)(const int16_t* keys, int64_t stride, int64_t pairs, const int16_t* query,
                     int64_t n, double factor, bool add, double* out);
  void (*scores_f64)(const float* keys, int64_t stride, int64_t width, const float* query,
                     int64_t n, double factor, bool add, double* out);
  // The same for `count` queries, (count, width), and one table, (width, stride); out: (count, out_stride).
  void (*scores_table)(const float* table, int64_t stride, int64_t width, const double* queries, int64_t count,
                       int64_t n, double factor, double* out, int64_t out_stride);
  void (*scores_f32)(const float* keys, int64_t stride, int64_t width, const float* query,
                     int64_t n, float factor, bool add, float* out);
  // Turn scores into probabilities. The scores are overwritten.
  void (*softmax_f64)(double* scores, int64_t n, float* out);
  void (*softmax_f32)(float* scores, int64_t n, float* out);
  // Sum values weighted by probabilities. values: (pairs, width, 2) or (n, width), width a multiple of 8;
  // out: (width). Values are read and `out` is written up to the next multiple of 16.
  void (*mix_i16)(const int16_t* values, int64_t pairs, int64_t width, const int16_t* weights,
                  double factor, float* out);
  void (*mix_f64)(const float* values, int64_t n, int64_t width, const float* weights, float* out);
  void (*mix_f32)(const float* values, int64_t n, int64_t width, const float* weights, float* out);

  // After the last quantizer (rule 3 of docs/arithmetic.md).
  float (*largest)(const float* x, int64_t n);
  float (*exp_sum)(const float* x, int64_t n, float shift);           // Σ exp(x − shift)
  float (*exp_store)(float* x, int64_t n, float shift);               // the same, x = exp(x − shift)
  // out = exp((x − shift) · factor) in double, for sampling; returns their sum, added in order.
  double (*exp_weights)(const float* x, int64_t n, float shift, double factor, double* out);
  float (*matching_sum)(const float* x, const int32_t* words, int64_t n, int32_t word);
  void (*subtract)(const float* x, int64_t n, float amount, float* out);  // out may be x
  // x = log(exp(x) + votes), for votes ≥ 0.
  void (*add_votes)(float* x, const float* votes, int64_t n);

  // Write 64 numbers: the next value for each set bit of the mask, 0 for the others. Up to 8 values past the
  // last one used may be read.
  void (*spread_i16)(uint64_t mask, const int16_t* values, int16_t* out);
};

// Each kernel set is in a file of its own, which is built only for processors of its kind.
const Kernels* scalar_kernels();
const Kernels* avx2_kernels();
const Kernels* avx512_kernels();
const Kernels* neon_kernels();
const Kernels* simd128_kernels();

}  // namespace micronet
