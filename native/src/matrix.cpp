#include "matrix.hpp"

namespace micronet {

int16_t Matrix::integer(int64_t row, int64_t column) const {
  if (bits <= 8) return bytes[integer_place(row, column)];
  if (bits > 9) return shorts[integer_place(row, column)];
  const int64_t pair = row / kLanes * pairs() + column / 2, place = place_in_pair(row % kLanes, column % 2);
  const int upper = int8_t(nines[upper_of(pair) + place]), last = nines[group_of(pair) + place] >> last_bit(pair) & 1;
  return int16_t(2 * upper + last);
}

void Matrix::set_integer(int64_t row, int64_t column, int16_t value) {
  if (bits <= 8) {
    bytes[integer_place(row, column)] = int8_t(value);
  } else if (bits > 9) {
    shorts[integer_place(row, column)] = value;
  } else {
    const int64_t pair = row / kLanes * pairs() + column / 2, place = place_in_pair(row % kLanes, column % 2);
    nines[upper_of(pair) + place] = uint8_t(value >> 1);
    uint8_t& lasts = nines[group_of(pair) + place];
    const auto bit = uint8_t(1 << last_bit(pair));
    lasts = uint8_t(value & 1 ? lasts | bit : lasts & ~bit);
  }
}

const void* Matrix::place_of_panel(int64_t panel) const {
  if (bits == 9) return nines.data() + group_of(panel * pairs());
  const int64_t place = integer_place(panel * kLanes, 0);
  if (bits <= 8) return bytes.data() + place;
  return shorts.data() + place;
}

void read_row(const Matrix& matrix, int64_t row, int16_t* integers, float* values) {
  const float scale = matrix.integers() ? *matrix.scales_at(row) : 1.0f;
  for (int64_t c = 0; c < padded(matrix.columns); ++c) {
    integers[c] = 0;
    values[c] = 0;
    if (c >= matrix.columns) continue;
    if (!matrix.integers()) {
      values[c] = matrix.floats[matrix.float_place(row, c)];
      continue;
    }
    integers[c] = matrix.integer(row, c);
    values[c] = float(integers[c]) * scale;
  }
}

}  // namespace micronet
