#include "word_index.hpp"

namespace micronet {

void WordIndex::reserve(int64_t rows) {
  words_.reserve(2 * std::size_t(rows));  // even if there are enough rows: a copy has no spare capacity
  unused_.reserve(2 * std::size_t(rows));
  if (std::size_t(rows) <= slot_of_row_.size()) return;
  std::size_t room = 64;
  while (room < std::size_t(rows) * 4) room *= 2;  // at most two slots per row, so that half of the table stays free
  std::vector<int32_t> table(room, 0);
  slot_of_row_.resize(std::size_t(rows), -1);
  table_.swap(table);
  for (std::size_t slot = 0; slot < words_.size(); ++slot) table_[place_of(words_[slot])] = int32_t(slot) + 1;
}

std::size_t WordIndex::place_of(int32_t word) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t place = (uint32_t(word) * 0x9E3779B1u >> 7) & mask;
  while (table_[place] && words_[std::size_t(table_[place] - 1)] != word) place = (place + 1) & mask;
  return place;
}

int32_t WordIndex::slot_of_word(int32_t word) const { return table_.empty() ? -1 : table_[place_of(word)] - 1; }

int32_t WordIndex::add(int32_t word) {
  const std::size_t place = place_of(word);
  if (!table_[place]) {
    words_.push_back(word);
    table_[place] = int32_t(words_.size());
  }
  return table_[place] - 1;
}

void WordIndex::set(int64_t row, int32_t word) {
  if (words_.size() >= 2 * slot_of_row_.size()) forget_unused();
  slot_of_row_[std::size_t(row)] = add(word);
}

void WordIndex::forget_unused() {
  unused_.swap(words_);
  words_.clear();
  table_.assign(table_.size(), 0);
  for (int32_t& slot : slot_of_row_)
    if (slot >= 0) slot = add(unused_[std::size_t(slot)]);
}

}  // namespace micronet
