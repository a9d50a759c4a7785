// Attention of one token over the tokens before it: scores, probabilities and mixed values of docs/arithmetic.md.
#pragma once

#include "window.hpp"
#include "workspace.hpp"

namespace micronet {

// Compute the mixed values of all heads of one token into workspace.mixed, from its queries in workspace.qkv.
// place: the token's place in the window; n: the number of tokens that it attends to, itself included.
void attend(const Model& model, int64_t layer, const Window& window, int64_t place, int64_t n, int64_t token,
            Workspace& workspace);

}  // namespace micronet
