// One text that is read word by word, with predictions of the next word.
//
// The methods of Session are in several files: session.cpp has feed, log_probability, log_distribution and
// what all methods need; top_k.cpp has top_k and complete with scan, scan_mixed and may_hold_better;
// sample.cpp has sample, influence.cpp influence. Saving and restoring (saving.cpp) are functions outside of the class.
#pragma once

#include <string_view>
#include <vector>

#include "added_words.hpp"
#include "forward.hpp"
#include "recall.hpp"
#include "softmax.hpp"

namespace micronet {

struct Candidate {
  float log_probability;
  int32_t id;
  // Order: the likelier one first; of two equally likely ones, the one with the smaller id.
  bool operator<(const Candidate& other) const {
    return log_probability != other.log_probability ? log_probability > other.log_probability : id < other.id;
  }
};

// How the cache changes the probability of a word: P = (1 - share) exp(without_cache) + share * cache.
struct Influence {
  double without_cache = 0;  // log-probability without the cache
  double share = 0;          // λ; 0 without a cache and before it holds anything
  double cache = 0;          // the cache's own probability of the word
  std::vector<Voter> voters; // the largest votes, for any word
};

class Session {
 public:
  explicit Session(const Model& model);

  const Model& model() const { return *model_; }
  int64_t tokens() const { return state_.tokens; }
  void feed(const int32_t* ids, int64_t count);

  // Words of this text outside the vocabulary. Their ids may be fed; only the cache predicts them.
  AddedWords& added() { return added_; }
  const AddedWords& added() const { return added_; }

  // Mix recollections of earlier texts into all predictions, and add their words to the session's; null ends this.
  void recall(std::shared_ptr<const Recollections> recollections);
  bool recalls() const { return recalled_ != nullptr; }
  const Recollections* recollections() const { return recalled_ ? &recalled_->recollections() : nullptr; }
  // Remove a word from the cache: its entries become <unk>, and an added word loses its name.
  void drop_word(std::string_view word);

  float log_probability(int32_t id);
  void log_distribution(float* out);  // (vocabulary)
  Influence influence(int32_t id, int64_t k);
  std::vector<Candidate> top_k(int64_t k);
  std::vector<Candidate> complete(std::string_view prefix, int64_t k);
  int32_t sample(double u, double temperature, int64_t top_k, double top_p);

  // Return the number of states in the cache; copy one of them, counted from the newest (1), and return the word that
  // followed it.
  int64_t remembered() const;
  int32_t remembered(int64_t back, float* state) const;  // (width)

  // For saving and restoring: the text's state and the last hidden state.
  const State& state() const { return state_; }
  State& state() { return state_; }
  States& hidden() { return hidden_; }
  const States& hidden() const { return hidden_; }

 private:
  // The computed parts of the next word's distribution; a feed discards them.
  struct Prediction {
    float log_sum = 0;                // of the first bin, including its entries for the others
    std::vector<float> tail_logits;   // (bins - 1)
    std::vector<char> kept;           // per bin: whether its logits are in `logits`
    std::vector<float> bin_log_sums;  // log Σ exp of the kept bins; the first is unused
    Buffer<float> logits;             // (vocabulary)
    std::vector<float> block_most;    // the largest logit of each block of each bin
    std::vector<int64_t> block_start; // where each bin's blocks begin in block_most
    bool voted = false;
    Votes votes;
    NGrams::Context context;  // of the table of n-grams; its weights include the cache's factor 1 - λ
    bool mixed = false;       // whether `extras` are computed
    Buffer<float> extras;     // (vocabulary) what table and cache add to the words' own probabilities
  };

  // In session.cpp.
  void forget();
  void check_fed() const;           // throws Failure before the first token
  void check_id(int32_t id) const;  // throws Failure for an id outside the vocabulary
  void need_bin(int64_t bin);       // computes a bin's logits unless they are kept
  float compute_bin(int64_t bin, float* logits, float* block_most);
  void need_votes();   // counts the cache's votes and finds the table's context unless that is done
  void need_extras();  // computes what table and cache add, in models with a table
  // Return the number to subtract from a bin's logits to get log-probabilities; it includes the bin's own sum.
  float constant(int64_t bin, float bin_log_sum) const;
  float value(int32_t id);  // the log-probability of a word whose bin's logits are kept
  float added_value(int32_t id) const;  // log-probability of an added word, with the votes counted
  // In top_k.cpp.
  void scan_mixed(int64_t bin, int64_t k, std::vector<Candidate>& best);
  void scan(int64_t bin, int64_t k, std::vector<Candidate>& best);
  bool may_hold_better(int64_t bin, float worst);

  const Model* model_;
  AddedWords added_;
  std::shared_ptr<const Recalled> recalled_;  // shared by the copies of a session
  State state_;
  Workspace workspace_;
  States hidden_;  // the last token's
  States projected_;
  Prediction next_;
  Buffer<float> distribution_;  // for samples
  Buffer<double> weights_;
};

}  // namespace micronet
