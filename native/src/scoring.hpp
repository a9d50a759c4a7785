// Log-probabilities of whole texts.
#pragma once

#include "added_words.hpp"
#include "model.hpp"

namespace micronet {

// Compute out[i] = log P(ids[i + 1] | ids[0 … i]), for i < count - 1. With `open`, ids from the vocabulary's size on
// are added words: read as <unk>, stored in the cache with their own ids, predicted by the cache and by their spelling.
void score(const Model& model, const int32_t* ids, int64_t count, int threads, float* out,
           const OpenText* open = nullptr);
void score_batch(const Model& model, const int32_t* const* ids, const size_t* counts, int64_t texts, int threads,
                 float* const* out);

}  // namespace micronet
