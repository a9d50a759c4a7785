// A weight matrix in memory.
//
// Rows are stored in panels of 16. Integers of up to 8 bits take one byte, 9-bit integers 9 bits (nines.hpp),
// wider ones two bytes. Two neighbouring columns of a row are stored side by side, because the processor
// multiplies them at once: (panels, pairs of columns, 16 rows, 2). Floats: (panels, columns, 16 rows).
// Incomplete panels and pairs are padded with zeros.
#pragma once

#include "buffer.hpp"
#include "kernels.hpp"
#include "nines.hpp"

namespace micronet {

struct Matrix {
  int64_t rows = 0, columns = 0;
  int bits = 32;
  Buffer<int8_t> bytes;      // 2 to 8 bits
  Buffer<uint8_t> nines;     // 9 bits
  Buffer<int16_t> shorts;    // 10 to 16 bits
  Buffer<float> floats;      // 32 bits
  Buffer<float> scales;      // for integers, value = integer · scale: one, or one per row (padded to a multiple of 16)
  int64_t scale_stride = 0;  // 0 or 1

  int64_t panels() const { return padded(rows) / kLanes; }
  int64_t pairs() const { return (columns + 1) / 2; }
  bool integers() const { return bits < 32; }
  int64_t largest() const { return (int64_t{1} << (bits - 1)) - 1; }
  const float* scales_at(int64_t row) const { return scales.data() + row * scale_stride; }

  // Return an element of a matrix of integers.
  int16_t integer(int64_t row, int64_t column) const;
  void set_integer(int64_t row, int64_t column, int16_t value);

  // Return where a panel of a matrix of integers begins; with 9 bits: the group that holds its first weights.
  const void* place_of_panel(int64_t panel) const;
  // Return the index of an element, for floats and for integers of other than 9 bits.
  int64_t integer_place(int64_t row, int64_t column) const {
    return ((row / kLanes * pairs() + column / 2) * kLanes + row % kLanes) * 2 + column % 2;
  }
  int64_t float_place(int64_t row, int64_t column) const {
    return (row / kLanes * columns + column) * kLanes + row % kLanes;
  }
};

// Return the bytes that a matrix takes.
inline int64_t matrix_bytes(int64_t rows, int64_t columns, int bits) {
  if (bits == 9) return nine_bytes(padded(rows) / kLanes * ((columns + 1) / 2));
  const int64_t size = bits > 16 ? 4 : bits > 8 ? 2 : 1;
  return padded(rows) * round_up(columns, 2) * size;
}

// Read one row as integers (zeros for floats) and as values, each padded to a multiple of 16.
void read_row(const Matrix& matrix, int64_t row, int16_t* integers, float* values);

}  // namespace micronet
