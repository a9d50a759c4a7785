// One thread's room for the states of its tokens.
#pragma once

#include "linear.hpp"
#include "model.hpp"

namespace micronet {

struct Workspace {
  Workspace(const Model& model, int64_t tokens);
  // Makes room for queries that see up to n tokens; to be called before `forward`, which allocates nothing there.
  void prepare(const Model& model, int64_t n);

  int64_t tokens;
  States embedded;  // rows of the tables
  States x, norm, qkv, mixed, inner, outer, hidden;

  // Of one query at a time, but for exact_scores: of all heads.
  int64_t prepared = 0;         // tokens that a query may see
  Buffer<double> exact_scores;  // (heads, score_stride)
  int64_t score_stride() const { return prepared + kLanes; }
  const double* wide_queries(int64_t token);  // a token's queries as doubles: (heads, key_width)
  Buffer<float> scores, probabilities;
  Buffer<int16_t> integers;  // a query's, then its probabilities'

  Scratch scratch;

 private:
  Buffer<double> queries_;
};

// How many tokens a thread computes at once: fewer where the model is very wide.
int64_t tokens_at_once(const Model& model);

}  // namespace micronet
