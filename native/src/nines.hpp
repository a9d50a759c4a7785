// Weights of 9 bits in 9 bits of memory: the upper 8 in a byte, the last ones of 8 steps in another.
//
// A step is a pair of columns of a panel: 32 weights (matrix.hpp). Eight steps make a group: 32 bytes
// of last bits, then 32 bytes for each step. Steps are numbered through the whole matrix, so a group
// may span panels. A weight has the same place among the 32 bytes of its step and among those of the
// last bits, where its bit is the higher the earlier its step: so a vector shifts the bits of all
// eight steps to the top of their bytes one after the other, and one instruction puts a bit and its
// upper byte together as a 16-bit integer, 128 times the weight. Rows stand in the order in which that
// instruction takes them.
#pragma once

#include <cstdint>

namespace micronet {

constexpr int64_t kGroupSteps = 8, kStepBytes = 32, kGroupBytes = (kGroupSteps + 1) * kStepBytes;

inline int64_t group_of(int64_t step) { return step / kGroupSteps * kGroupBytes; }
inline int64_t upper_of(int64_t step) { return group_of(step) + (1 + step % kGroupSteps) * kStepBytes; }
// A weight's place among the bytes of a step, for a row of a panel and the first or second column.
inline int64_t place_in_step(int64_t row, int64_t column) {
  return row % 4 * 2 + row / 4 % 2 * 16 + row / 8 * 8 + column;
}
// The last bit's place in its byte.
inline int last_bit(int64_t step) { return 7 - int(step % kGroupSteps); }

inline int64_t nine_bytes(int64_t steps) { return group_of(steps + kGroupSteps - 1); }

}  // namespace micronet
