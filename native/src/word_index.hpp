// Which of a few thousand remembered words are the same, kept up to date as they come and go.
//
// Every row has a word. Every word that some row has, or had until recently, has a slot. So votes are summed
// by slot, without a look-up for each vote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace micronet {

class WordIndex {
 public:
  // Makes room for rows 0 … rows - 1, and for `set` to need none; throws before it changes anything.
  void reserve(int64_t rows);
  // The row's word from now on; never throws after `reserve`.
  void set(int64_t row, int32_t word);

  int32_t slot_of_row(int64_t row) const { return slot_of_row_[std::size_t(row)]; }
  int32_t slot_of_word(int32_t word) const;  // -1 where there is none
  int64_t slots() const { return int64_t(words_.size()); }
  int32_t word(int64_t slot) const { return words_[std::size_t(slot)]; }

 private:
  std::size_t place_of(int32_t word) const;
  int32_t add(int32_t word);
  void forget_unused();

  std::vector<int32_t> slot_of_row_;  // -1 for a row without a word
  std::vector<int32_t> words_;        // of each slot
  std::vector<int32_t> unused_;       // room for words_, so that forgetting needs none
  std::vector<int32_t> table_;        // slot + 1 by the word's hash, or 0; its size a power of two
};

}  // namespace micronet
