#include "matrix.hpp"

namespace micronet {

void read_row(const Matrix& matrix, int64_t row, int16_t* integers, float* values) {
  const float step = matrix.integers() ? *matrix.steps_at(row) : 1.0f;
  for (int64_t c = 0; c < padded(matrix.columns); ++c) {
    integers[c] = 0;
    values[c] = 0;
    if (c >= matrix.columns) continue;
    if (!matrix.integers()) {
      values[c] = matrix.floats[matrix.float_place(row, c)];
      continue;
    }
    const int64_t place = matrix.integer_place(row, c);
    integers[c] = matrix.bits <= 8 ? int16_t(matrix.bytes[place]) : matrix.shorts[place];
    values[c] = float(integers[c]) * step;
  }
}

}  // namespace micronet
