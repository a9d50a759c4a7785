// A writer that puts the elements of a 9-bit matrix, given row after row, into groups of pairs (nines.hpp).
#pragma once

#include <utility>

#include "kernels.hpp"
#include "nines.hpp"

namespace micronet {

// Upper bytes are written at once; the lowest bits of a row's pairs are collected until their byte is full.
class NinesWriter {
 public:
  NinesWriter(uint8_t* to, int64_t columns) : to_(to), columns_(columns) { begin_row(); }

  // Write the next `count` elements. Whole groups and whole narrow rows are much faster than single elements.
  void put(const int16_t* values, int64_t count) {
    while (count) {
      if (in_group_ == 0 && odd_ == 0 && count >= 2 * kGroupPairs && columns_ - column_ >= 2 * kGroupPairs) {
        put_group(values);
        values += 2 * kGroupPairs;
        count -= 2 * kGroupPairs;
      } else if (column_ == 0 && count >= columns_ && columns_ % 2 == 0 && in_group_ + columns_ / 2 <= kGroupPairs) {
        put_row(values);
        values += columns_;
        count -= columns_;
      } else {
        put_one(*values++);
        --count;
      }
      if (column_ == columns_) {
        end_group();
        column_ = 0;
        ++row_;
        begin_row();
      }
    }
  }

 private:
  // Write the upper bytes of a row's next pairs; return the lowest bits of both columns, the first pair's on top.
  static std::pair<unsigned, unsigned> put_pairs(const int16_t* values, int64_t pairs, uint8_t* upper) {
    unsigned first = 0, second = 0;
    for (int64_t pair = 0; pair < pairs; ++pair, upper += kPairBytes) {
      upper[0] = uint8_t(values[2 * pair] >> 1);
      upper[1] = uint8_t(values[2 * pair + 1] >> 1);
      first = 2 * first | (values[2 * pair] & 1);
      second = 2 * second | (values[2 * pair + 1] & 1);
    }
    return {first, second};
  }
  // Write a row's next eight pairs, which begin a group.
  void put_group(const int16_t* values) {
    const auto lasts = put_pairs(values, kGroupPairs, group_ + kPairBytes);
    group_[0] = uint8_t(lasts.first);
    group_[1] = uint8_t(lasts.second);
    column_ += 2 * kGroupPairs;
    group_ += kGroupBytes;
  }
  // Write a row that lies within one group, as every row of a very narrow table does.
  void put_row(const int16_t* values) {
    const auto lasts = put_pairs(values, columns_ / 2, group_ + (1 + in_group_) * kPairBytes);
    const auto behind = int(kGroupPairs - in_group_ - columns_ / 2);
    group_[0] = uint8_t(group_[0] | lasts.first << behind);
    group_[1] = uint8_t(group_[1] | lasts.second << behind);
    column_ = columns_;
  }
  void put_one(int16_t value) {
    group_[(1 + in_group_) * kPairBytes + odd_] = uint8_t(value >> 1);
    lasts_[odd_] = uint8_t(lasts_[odd_] | (value & 1) << (7 - in_group_));
    ++column_;
    in_group_ += odd_;
    odd_ = 1 - odd_;
    if (in_group_ < kGroupPairs) return;
    end_group();
    in_group_ = 0;
    group_ += kGroupBytes;
  }
  void begin_row() {
    const int64_t pair = row_ / kLanes * ((columns_ + 1) / 2);
    group_ = to_ + group_of(pair) + place_in_pair(row_ % kLanes, 0);
    in_group_ = pair % kGroupPairs;
    odd_ = 0;
  }
  void end_group() {
    for (int i = 0; i < 2; ++i) {
      if (lasts_[i]) group_[i] = uint8_t(group_[i] | lasts_[i]);
      lasts_[i] = 0;
    }
  }

  uint8_t *to_, *group_ = nullptr;  // the matrix; the group's bytes, at the row's index
  int64_t columns_, row_ = 0, column_ = 0;
  int64_t in_group_ = 0, odd_ = 0;  // the pair's number in its group, and the column's in the pair
  uint8_t lasts_[2] = {};           // lowest bits of the group that are not written yet, per column of a pair
};

}  // namespace micronet
