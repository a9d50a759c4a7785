// A writer that puts a matrix's elements, given row after row, into panels (matrix.hpp).
#pragma once

#include "kernels.hpp"

namespace micronet {

// GROUP columns of a row are stored side by side: 2 of integers, 1 of floats. Panels must be zero at first.
template <class T, int GROUP>
class PanelWriter {
 public:
  PanelWriter(T* to, int64_t columns) : to_(to), columns_(columns), panel_(round_up(columns, GROUP) * kLanes) {}

  // Write the next `count` elements.
  template <class From>
  void put(const From* values, int64_t count) {
    while (count) {
      const int64_t run = count < columns_ - column_ ? count : columns_ - column_;
      T* row = to_ + row_ / kLanes * panel_ + row_ % kLanes * GROUP;
      const int64_t end = column_ + run;
      for (; column_ < end && column_ % GROUP; ++column_) *place(row) = T(*values++);
      T* group = place(row);
      for (; column_ + GROUP <= end; column_ += GROUP, values += GROUP, group += kLanes * GROUP)
        for (int i = 0; i < GROUP; ++i) group[i] = T(values[i]);
      for (; column_ < end; ++column_) *place(row) = T(*values++);
      count -= run;
      if (column_ == columns_) {
        column_ = 0;
        ++row_;
      }
    }
  }

 private:
  T* place(T* row) const { return row + column_ / GROUP * kLanes * GROUP + column_ % GROUP; }

  T* to_;
  int64_t columns_, panel_;  // panel_: elements per panel
  int64_t row_ = 0, column_ = 0;
};

}  // namespace micronet
