// 9-bit weights in 9 bits of memory: the upper 8 bits in one byte, the lowest bits of 8 weights in another.
//
// A pair is two neighbouring columns of a panel: 32 weights (matrix.hpp). Eight pairs make a group: 32 bytes
// of lowest bits, then 32 bytes per pair. Pairs are numbered through the whole matrix, so a group may span
// panels. A weight has the same index in the 32 bytes of its pair and in the 32 bytes of lowest bits; there,
// the first pair's bit is the highest. So a shift brings the bits of one pair after another to the top of
// their bytes, and one instruction joins each bit with its upper byte to a 16-bit integer, 128 times the
// weight. Rows are in the order that this instruction needs.
#pragma once

#include <cstdint>

namespace micronet {

constexpr int64_t kGroupPairs = 8, kPairBytes = 32, kGroupBytes = (kGroupPairs + 1) * kPairBytes;

// Return where in the matrix a pair's group begins, and where the pair's upper bytes begin.
inline int64_t group_of(int64_t pair) { return pair / kGroupPairs * kGroupBytes; }
inline int64_t upper_of(int64_t pair) { return group_of(pair) + (1 + pair % kGroupPairs) * kPairBytes; }
// Return a weight's index in the bytes of a pair, for a row of a panel and the first or second column.
inline int64_t place_in_pair(int64_t row, int64_t column) {
  return row % 4 * 2 + row / 4 % 2 * 16 + row / 8 * 8 + column;
}
// Return the position of a pair's lowest bits in their byte.
inline int last_bit(int64_t pair) { return 7 - int(pair % kGroupPairs); }

// Return the bytes that a matrix of this many pairs takes.
inline int64_t nine_bytes(int64_t pairs) { return group_of(pairs + kGroupPairs - 1); }

}  // namespace micronet
