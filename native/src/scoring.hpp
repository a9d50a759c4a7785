// Log-probabilities of whole texts.
#pragma once

#include "model.hpp"

namespace micronet {

// out[i] is log P(ids[i + 1] | ids[0 … i]), for i < count - 1.
void score(const Model& model, const int32_t* ids, int64_t count, int threads, float* out);
void score_batch(const Model& model, const int32_t* const* ids, const size_t* counts, int64_t texts, int threads,
                 float* const* out);

}  // namespace micronet
