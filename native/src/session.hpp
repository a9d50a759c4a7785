// One text that is read word by word, and predictions of the next word.
//
// The methods of Session are in several files, one per question: session.cpp has feed, log_probability,
// log_distribution and what they all need; top_k.cpp has top_k and complete with scan and may_hold_better;
// sample.cpp has sample. Saving and restoring (saving.cpp) are functions outside of the class.
#pragma once

#include <string_view>
#include <vector>

#include "forward.hpp"
#include "recall.hpp"
#include "softmax.hpp"

namespace micronet {

struct Candidate {
  float log_probability;
  int32_t id;
  // The likelier one comes first; of two equally likely ones that with the smaller id.
  bool operator<(const Candidate& other) const {
    return log_probability != other.log_probability ? log_probability > other.log_probability : id < other.id;
  }
};

class Session {
 public:
  explicit Session(const Model& model);

  const Model& model() const { return *model_; }
  int64_t tokens() const { return state_.tokens; }
  void feed(const int32_t* ids, int64_t count);

  float log_probability(int32_t id);
  void log_distribution(float* out);  // (vocabulary)
  std::vector<Candidate> top_k(int64_t k);
  std::vector<Candidate> complete(std::string_view prefix, int64_t k);
  int32_t sample(double u, double temperature, int64_t top_k, double top_p);

  // For saving and restoring: what was read and the last hidden state.
  const State& state() const { return state_; }
  State& state() { return state_; }
  States& hidden() { return hidden_; }
  const States& hidden() const { return hidden_; }

 private:
  // The computed parts of the next word's distribution; a feed discards them.
  struct Prediction {
    float log_sum = 0;                // of the first bin with its entries for the others
    std::vector<float> tail_logits;   // (bins - 1)
    std::vector<char> kept;           // whether a bin's logits are in `logits`
    std::vector<float> bin_log_sums;  // of those; the first is unused
    Buffer<float> logits;             // (vocabulary)
    std::vector<float> block_most;    // largest logit of each block of each bin
    std::vector<int64_t> block_start; // where a bin's blocks begin in it
    bool voted = false;
    Votes votes;
  };

  // In session.cpp.
  void forget();
  void check_fed() const;           // throws Failure before the first token
  void check_id(int32_t id) const;  // throws Failure for an id outside the vocabulary
  void need_bin(int64_t bin);       // computes a bin's logits unless they are kept
  float compute_bin(int64_t bin, float* logits, float* block_most);
  void need_votes();  // counts the cache's votes unless that is done
  // What is subtracted from a bin's logits to give log-probabilities; the bin's own sum is part of it.
  float constant(int64_t bin, float bin_log_sum) const;
  float value(int32_t id);  // log-probability of a word whose bin is kept
  // In top_k.cpp.
  void scan(int64_t bin, int64_t k, std::vector<Candidate>& best);
  bool may_hold_better(int64_t bin, float worst);

  const Model* model_;
  State state_;
  Workspace workspace_;
  States hidden_;  // the last token's
  States projected_;
  Prediction next_;
  Buffer<float> distribution_;  // for samples
  Buffer<double> weights_;
};

}  // namespace micronet
