// One thread's temporary memory for the states of its tokens.
#pragma once

#include "linear.hpp"
#include "model.hpp"

namespace micronet {

struct Workspace {
  Workspace(const Model& model, int64_t tokens);
  // Make room for queries that attend to up to n tokens. Call it before `forward`, which does not allocate this.
  void prepare(const Model& model, int64_t n);

  int64_t tokens;
  States embedded;  // rows of the tables
  States x, norm, qkv, mixed, inner, outer, hidden;

  // For one query at a time; exact_scores for all heads.
  int64_t prepared = 0;         // the number of tokens that a query may attend to
  Buffer<double> exact_scores;  // (heads, score_stride)
  int64_t score_stride() const { return prepared + kLanes; }
  const double* wide_queries(int64_t token);  // a token's queries as doubles: (heads, key_width)
  Buffer<float> scores, probabilities;
  Buffer<int16_t> integers;  // those of a query, then those of its probabilities

  Scratch scratch;

 private:
  Buffer<double> queries_;
};

// Return the number of tokens that a thread computes at once: fewer if the model is very wide.
int64_t tokens_at_once(const Model& model);

}  // namespace micronet
