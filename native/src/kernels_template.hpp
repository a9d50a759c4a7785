// Every kernel once, over the vectors S of one set of instructions; each kernels_*.cpp makes a table.
#pragma once

#include "kernels_attention.hpp"
#include "kernels_nines.hpp"
#include "kernels_products.hpp"
#include "kernels_states.hpp"
#include "kernels_unpack.hpp"
#include "kernels_words.hpp"

namespace {

// N: the vectors that put weights of 9 bits together, and unpack files.
template <class S, class N = S>
constexpr micronet::Kernels table(const char* name) {
  return {
      name,
      products<Integers<S, Plain<S, int8_t>>>,
      products_i9<N, S>,
      products<Integers<S, Plain<S, int16_t>>>,
      products<Floats<S>>,
      products<Exact<S, Plain<S, int8_t>>>,
      products<Exact<N, Nines<N>>>,
      products<Exact<S, Plain<S, int16_t>>>,
      products<Exact<S, float>>,
      products<Mixed<S, Plain<S, int8_t>>>,
      products<Mixed<N, Nines<N>>>,
      products<Mixed<S, Plain<S, int16_t>>>,
      finish_i32<S>,
      finish_split<S>,
      finish_i32_exp<S>,
      finish_split_exp<S>,
      finish_f32<S>,
      finish_i32_exact<S>,
      finish_f64<S>,
      layer_norm<S>,
      quantize<S>,
      scores_i16<S>,
      scores_f64<S>,
      scores_table<S>,
      scores_f32<S>,
      softmax_f64<S>,
      softmax_f32<S>,
      mix_i16<S>,
      mix_f64<S>,
      mix_f32<S>,
      largest<S>,
      exp_sum<S>,
      exp_store<S>,
      exp_weights<S>,
      matching_sum<S>,
      subtract<S>,
      add_votes<S>,
      spread_i16<N>,
  };
}

}  // namespace
