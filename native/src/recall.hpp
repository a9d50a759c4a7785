// The cache's probabilities of the next word.
#pragma once

#include <vector>

#include "added_words.hpp"
#include "forward.hpp"
#include "linear.hpp"
#include "memory.hpp"
#include "recollections.hpp"

namespace micronet {

// Whether sessions can recall earlier texts. The module for browsers lacks this, to stay small.
#ifdef MICRONET_WITHOUT_RECOLLECTIONS
constexpr bool kRecollects = false;
#else
constexpr bool kRecollects = true;
#endif

// The vote of one state of the cache.
struct Voter {
  int64_t place;  // number of the word that followed the state, in the text
  int32_t word;
  double part;  // of all votes
};

// The votes of the cache and of recollections: their part of each word's probability, multiplied by their shares.
class Votes {
 public:
  // Compute the similarities of state number t to those before it and to recalled ones (if any), summed by word.
  void count(const Model& model, const Memory& memory, int64_t t, const Batch& hidden, Scratch& scratch,
             const Recalled* recalled = nullptr);

  bool any() const { return !words_.empty(); }
  // Return the sum of all votes.
  double share() const { return share_; }
  const std::vector<int32_t>& words() const { return words_; }    // the words that have votes
  const std::vector<float>& shares() const { return shares_; }    // the votes of each of them
  // Return the votes of a word, 0 if it has none. Memory and recollections must not have changed since the count.
  float share(const Memory& memory, int32_t word) const;
  // Return the vote of every state, as they were counted for state number t; `memory` must not have changed since.
  std::vector<Voter> voters(const Memory& memory, int64_t t) const;

 private:
  void count_cache(const Model& model, const Memory& memory, int64_t t, const Batch& query, double others,
                   Scratch& scratch);
  void count_recalled(const Model& model, const Batch& query, Scratch& scratch);

  const Recalled* recalled_ = nullptr;
  double share_ = 0;
  std::vector<float> by_slot_;           // votes by the slots of the memory's index
  std::vector<float> by_recalled_slot_;  // votes by the slots of the recollections' index
  std::vector<uint8_t> merged_;          // which of these slots have a word that the cache also has votes for
  std::vector<int32_t> words_;
  std::vector<float> shares_;
  Buffer<float> similarities_;           // of the cache's states; `voters` reads them after the count
  Buffer<float> recalled_similarities_;
};

// Replace log P by log((1 − λ) P + λ P_cache), for one word per token. The tokens are consecutive, beginning at
// state number `first`; words[t] is the word that followed. `room`: (tokens, Memory::kBlock).
void mix_recalled(const Model& model, const Memory& memory, int64_t first, const Batch& hidden, const int32_t* words,
                  Scratch& scratch, States& query, float* room, float* log_probabilities, const OpenText* open = nullptr);

}  // namespace micronet
