// From words to hidden states: the step of docs/arithmetic.md for a chunk of tokens.
#pragma once

#include "linear.hpp"
#include "memory.hpp"
#include "model.hpp"
#include "threads.hpp"
#include "window.hpp"

namespace micronet {

constexpr int64_t kLargestChunk = 512;  // tokens that all threads together compute at once

// Everything that a text has left behind.
struct State {
  explicit State(const Model& model) : window(model), memory(model) {}
  Window window;
  Memory memory;
  int64_t tokens = 0;
};

// One thread's room for the states of its tokens.
struct Workspace {
  Workspace(const Model& model, int64_t tokens);
  // Room for a query that sees n tokens; before `forward`, which has no other room to ask for there.
  void prepare(const Model& model, int64_t n);
  int64_t tokens, prepared = 0;
  States embedded;  // rows of the tables
  States x, norm, qkv, mixed, inner, outer, hidden;
  Buffer<double> exact_scores;  // (heads, score_stride)
  int64_t score_stride() const { return prepared + kLanes; }
  const double* wide_queries(int64_t token);  // (heads, key_width)
  Buffer<float> scores, probabilities;
  Buffer<int16_t> integers;
  Scratch scratch;

 private:
  Buffer<double> queries_;
};

// How many tokens a thread computes at once: fewer where the model is very wide.
int64_t tokens_at_once(const Model& model);

// Where a chunk stands: its first token's number in the text, and place in the window.
struct Chunk {
  const int32_t* ids;  // (count)
  int64_t count, first, place;
};

// Computes the hidden states of tokens from … to - 1 of a chunk into workspace.hidden and the memory.
// All threads call it, each with its tokens (none is fine); `barrier` is waited at once a layer. Each
// workspace is prepared for min(context, first + count) tokens.
void forward(const Model& model, State& state, const Chunk& chunk, int64_t from, int64_t to,
             Workspace& workspace, Barrier& barrier);

}  // namespace micronet
