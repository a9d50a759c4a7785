// The contents of the cache for a text: hidden states and the words that followed them.
//
// State number j of a text is row j mod `rows` of one matrix in panels (matrix.hpp), so that similarities
// are an ordinary product. There is room for the N states in use and for one more chunk; memory grows with
// the text. Sums are taken over blocks of 512 states that begin at multiples of 512, so they do not depend
// on where in memory the states are.
#pragma once

#include "linear.hpp"
#include "model.hpp"
#include "word_index.hpp"

namespace micronet {

class Memory {
 public:
  static constexpr int64_t kBlock = 512;

  explicit Memory(const Model& model);

  bool used() const { return rows_limit_ != 0; }
  // Make room for states first … first + count - 1; throws before it changes anything.
  void reserve(int64_t first, int64_t count);
  // Write state number j; may run on several threads for different j.
  void put(int64_t j, const float* values, const int16_t* integers);
  void set_word(int64_t j, int32_t word) {
    words_[j % rows_limit_] = word;
    index_.set(j % rows_limit_, word);
  }
  // Read state number j, for saving.
  void get(int64_t j, float* values, int16_t* integers) const;
  int32_t word(int64_t j) const { return words_[j % rows_limit_]; }

  // Return the first state in use for the prediction after state t; the last is state t - 1.
  int64_t first_for(int64_t t) const;
  // The states as a matrix of the model's width (integers: padded to a multiple of 16), rows in the order of
  // memory. The scales of integers include θ; for floats, the query must include it.
  const Matrix& states() const { return states_; }
  // Return the row of a block's first state. The rows of a block are consecutive.
  int64_t row_of(int64_t j) const { return j % rows_limit_; }
  const int32_t* words() const { return words_.data(); }
  // The index of rows by word.
  const WordIndex& index() const { return index_; }

 private:
  const Model* model_;
  int64_t rows_limit_ = 0;  // a multiple of kBlock; 0 without a cache
  Matrix states_;
  Buffer<int32_t> words_;
  WordIndex index_;
};

}  // namespace micronet
