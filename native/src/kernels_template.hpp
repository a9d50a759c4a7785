// All kernels, written once over the vectors S of an instruction set; each kernels_*.cpp makes a table of them.
#pragma once

#include "kernels_attention.hpp"
#include "kernels_nines.hpp"
#include "kernels_products.hpp"
#include "kernels_states.hpp"
#include "kernels_unpack.hpp"
#include "kernels_words.hpp"

namespace {

// Entries are assigned by name: several have the same type, so by position two could be swapped unnoticed. A test
// checks that none is missing. N: the vectors for 9-bit weights and for unpacking files.
template <class S, class N = S>
constexpr micronet::Kernels table(const char* name) {
  micronet::Kernels k{};
  k.name = name;

  k.products_i8 = products<Integers<S, Plain<S, int8_t>>>;
  k.products_i9 = products_i9<N, S>;
  k.products_i16 = products<Integers<S, Plain<S, int16_t>>>;
  k.products_f32 = products<Floats<S>>;
  k.exact_i8 = products<Exact<S, Plain<S, int8_t>>>;
  k.exact_i9 = products<Exact<N, Nines<N>>>;
  k.exact_i16 = products<Exact<S, Plain<S, int16_t>>>;
  k.exact_f32 = products<Exact<S, float>>;
  k.mixed_i8 = products<Mixed<S, Plain<S, int8_t>>>;
  k.mixed_i9 = products<Mixed<N, Nines<N>>>;
  k.mixed_i16 = products<Mixed<S, Plain<S, int16_t>>>;

  k.finish_i32 = finish_i32<S>;
  k.finish_split = finish_split<S>;
  k.finish_i32_exp = finish_i32_exp<S>;
  k.finish_split_exp = finish_split_exp<S>;
  k.finish_f32 = finish_f32<S>;
  k.finish_i32_exact = finish_i32_exact<S>;
  k.finish_f64 = finish_f64<S>;

  k.layer_norm = layer_norm<S>;
  k.quantize = quantize<S>;

  k.scores_i16 = scores_i16<S>;
  k.scores_f64 = scores_f64<S>;
  k.scores_table = scores_table<S>;
  k.scores_f32 = scores_f32<S>;
  k.softmax_f64 = softmax_f64<S>;
  k.softmax_f32 = softmax_f32<S>;
  k.mix_i16 = mix_i16<S>;
  k.mix_f64 = mix_f64<S>;
  k.mix_f32 = mix_f32<S>;

  k.largest = largest<S>;
  k.exp_sum = exp_sum<S>;
  k.exp_store = exp_store<S>;
  k.exp_weights = exp_weights<S>;
  k.matching_sum = matching_sum<S>;
  k.subtract = subtract<S>;
  k.add_votes = add_votes<S>;

  k.spread_i16 = spread_i16<N>;
  return k;
}

}  // namespace
