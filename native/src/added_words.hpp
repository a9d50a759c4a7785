// Words that a session has added to the vocabulary. Their ids follow those of the vocabulary.
//
// The network reads them as <unk>. The cache stores them with their own ids, and votes for them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <map>
#include <vector>

#include "vocabulary.hpp"

namespace micronet {

class AddedWords {
 public:
  static constexpr int32_t kMost = 1 << 20;  // bounds the memory of a session

  explicit AddedWords(const Vocabulary& vocabulary);

  int32_t size() const { return int32_t(words_.size()); }
  // Return the id of a word of the vocabulary or of an added one; -1 if it is neither.
  int32_t find(std::string_view word) const;
  // The same, but add the word if it is neither; throws Failure.
  int32_t add(std::string_view word);
  // Remove the name of an added word: it is no longer found, and its id stays unused. Words of the vocabulary stay.
  void drop(int32_t id);
  bool dropped() const { return dropped_; }  // whether there are such ids
  int32_t unknown() const { return unknown_; }
  const std::string& word(int32_t id) const { return *words_[size_t(id - first_)]; }
  // Return the id that the network reads in place of an id.
  int32_t read_as(int32_t id) const { return id < first_ ? id : unknown_; }

 private:
  const Vocabulary* vocabulary_;
  int32_t first_, unknown_;
  bool dropped_ = false;
  std::vector<std::shared_ptr<const std::string>> words_;  // shared by the copies of a session
  std::map<std::string_view, int32_t> ids_;
};

// Added words of a text that is scored as a whole.
struct OpenText {
  int32_t vocabulary = 0, unknown = 0;
  const double* log_spelled = nullptr;  // log P_spelling of each added word
};

}  // namespace micronet
