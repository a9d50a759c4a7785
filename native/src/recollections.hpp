// What a session recalls of earlier texts (docs/personal.md).
//
// Recollections belong to a person and a model: hidden states with the words that followed them, and words outside
// the vocabulary with their counts. They never change, so sessions can share them. Each session has its own ids for
// their words.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "added_words.hpp"
#include "model.hpp"
#include "typos.hpp"
#include "word_index.hpp"

namespace micronet {

// A word outside the vocabulary, and how often it was read.
struct CountedWord {
  std::string text;
  uint32_t count;
};

class Recollections {
 public:
  static constexpr int64_t kRamp = 200;  // number of states, or of counted words, from which a share is whole

  // states: (count, width) in half precision; following[i]: an id of the vocabulary or, from its size on, a word of
  // `words`. The shares are those of the prediction; throws Failure.
  Recollections(const Model& model, const uint16_t* states, const int32_t* following, int64_t count,
                std::vector<CountedWord> words, double state_share, double word_share);

  const Model& model() const { return *model_; }
  int64_t size() const { return int64_t(following_.size()); }
  const Matrix& states() const { return states_; }
  const std::vector<int32_t>& following() const { return following_; }
  const std::vector<CountedWord>& words() const { return words_; }
  double state_share() const { return state_share_; }
  double word_share() const { return word_share_; }
  double counted() const { return counted_; }  // the sum of the words' counts
  SharedBeginnings& beginnings() const { return *beginnings_; }  // of its words (suggestions.cpp)

 private:
  const Model* model_;
  Matrix states_;
  std::vector<int32_t> following_;
  std::vector<CountedWord> words_;
  double state_share_ = 0, word_share_ = 0, counted_ = 0;
  std::unique_ptr<SharedBeginnings> beginnings_ = std::make_unique<SharedBeginnings>();
};

// Recollections with the ids of one session.
class Recalled {
 public:
  // Add the words to the session's; throws Failure.
  Recalled(std::shared_ptr<const Recollections> recollections, AddedWords& added);

  const Recollections& recollections() const { return *recollections_; }
  double share() const { return recollections_->state_share() + recollections_->word_share(); }
  // An index by word of the states and, after them, of the counted words.
  const WordIndex& index() const { return index_; }
  // The votes for the counted words by the slots of the index; they are the same for every prediction.
  const std::vector<float>& word_votes() const { return word_votes_; }

 private:
  std::shared_ptr<const Recollections> recollections_;
  WordIndex index_;
  std::vector<float> word_votes_;
};

// A number in half precision (IEEE 754).
float from_half(uint16_t bits);
uint16_t to_half(float value);  // rounds to nearest, ties to even; values beyond the range become the largest number

}  // namespace micronet
