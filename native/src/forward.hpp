// The forward pass from words to hidden states: the formulas of docs/arithmetic.md for a chunk of tokens.
#pragma once

#include <vector>

#include "memory.hpp"
#include "model.hpp"
#include "threads.hpp"
#include "window.hpp"
#include "workspace.hpp"

namespace micronet {

constexpr int64_t kLargestChunk = 512;  // tokens computed at once by all threads together

// The state and the memory of a text.
struct State {
  explicit State(const Model& model) : window(model), memory(model) {}
  Window window;
  Memory memory;
  int64_t tokens = 0;
  std::vector<int32_t> read;  // the last words, for the table of n-grams; of sessions only
};

// A chunk of tokens, with its first token's number in the text and place in the window.
struct Chunk {
  const int32_t* ids;  // (count)
  int64_t count, first, place;
};

// Compute the hidden states of tokens from … to - 1 of a chunk into workspace.hidden and the memory.
// All threads call this, each with its own tokens (possibly none), and wait at `barrier` once per layer.
// Each workspace must be prepared for min(context, first + count) tokens.
void forward(const Model& model, State& state, const Chunk& chunk, int64_t from, int64_t to,
             Workspace& workspace, Barrier& barrier);

}  // namespace micronet
