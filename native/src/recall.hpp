// The cache's probabilities of the next word.
#pragma once

#include <vector>

#include "forward.hpp"
#include "linear.hpp"
#include "memory.hpp"

namespace micronet {

// The cache's votes for words, each with its share λ of the probability.
class Votes {
 public:
  // Similarities of state number t to those before it, summed up by word.
  void count(const Model& model, const Memory& memory, int64_t t, const Batch& hidden, Scratch& scratch);

  bool any() const { return !words_.empty(); }
  // The share of all votes together.
  double share() const { return share_; }
  const std::vector<int32_t>& words() const { return words_; }    // those with votes
  const std::vector<float>& shares() const { return shares_; }    // of each of them
  // The share of a word, 0 where nothing voted for it; `memory` as it was when votes were counted.
  float share(const Memory& memory, int32_t word) const;

 private:
  double share_ = 0;
  std::vector<float> by_slot_;  // shares by the slots of the memory's index
  std::vector<int32_t> words_;
  std::vector<float> shares_;
  Buffer<float> similarities_;
};

// log((1 − λ) P + λ P_cache) of one word per token, in place of log P. Tokens are states number
// first … in a row; words[t] is what followed. `room`: (tokens, Memory::kBlock).
void mix_recalled(const Model& model, const Memory& memory, int64_t first, const Batch& hidden, const int32_t* words,
                  Scratch& scratch, States& query, float* room, float* log_probabilities);

}  // namespace micronet
