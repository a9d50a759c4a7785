// From words to hidden states: the formulas of docs/arithmetic.md for a chunk of tokens.
#pragma once

#include "memory.hpp"
#include "model.hpp"
#include "threads.hpp"
#include "window.hpp"
#include "workspace.hpp"

namespace micronet {

constexpr int64_t kLargestChunk = 512;  // tokens that all threads together compute at once

// The state and the memory of a text.
struct State {
  explicit State(const Model& model) : window(model), memory(model) {}
  Window window;
  Memory memory;
  int64_t tokens = 0;
};

// A chunk's position: its first token's number in the text, and place in the window.
struct Chunk {
  const int32_t* ids;  // (count)
  int64_t count, first, place;
};

// Computes the hidden states of tokens from … to - 1 of a chunk into workspace.hidden and the memory.
// All threads call it, each with its tokens (none is fine); they wait at `barrier` once per layer. Each
// workspace is prepared for min(context, first + count) tokens.
void forward(const Model& model, State& state, const Chunk& chunk, int64_t from, int64_t to,
             Workspace& workspace, Barrier& barrier);

}  // namespace micronet
