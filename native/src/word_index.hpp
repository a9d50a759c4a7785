// An index of the memory's rows by word, updated as words are added and replaced.
//
// Every row has a word. Every word that a row has, or had until recently, has a slot. So votes are summed by
// slot, without a look-up per vote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace micronet {

class WordIndex {
 public:
  // Make room for rows 0 … rows - 1, so that `set` allocates nothing; throws before it changes anything.
  void reserve(int64_t rows);
  // Set the row's word; never throws after `reserve`.
  void set(int64_t row, int32_t word);

  int32_t slot_of_row(int64_t row) const { return slot_of_row_[std::size_t(row)]; }
  int32_t slot_of_word(int32_t word) const;  // -1 if the word has no slot
  int64_t slots() const { return int64_t(words_.size()); }
  int32_t word(int64_t slot) const { return words_[std::size_t(slot)]; }

 private:
  std::size_t place_of(int32_t word) const;
  int32_t add(int32_t word);
  void forget_unused();

  std::vector<int32_t> slot_of_row_;  // -1 for a row without a word
  std::vector<int32_t> words_;        // the word of each slot
  std::vector<int32_t> unused_;       // spare memory for words_, so that removing words allocates nothing
  std::vector<int32_t> table_;        // slot + 1 by the word's hash, or 0; the size is a power of two
};

}  // namespace micronet
