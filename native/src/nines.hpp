// Weights of 9 bits in 9 bits of memory: the upper 8 bits in one byte, the last bits of 8 weights in another.
//
// A pair means two neighbouring columns of a panel: 32 weights (matrix.hpp). Eight pairs make a group: 32
// bytes of last bits, then 32 bytes for each pair. Pairs are numbered through the whole matrix, so a group
// may span panels. A weight has the same place among the 32 bytes of its pair and among those of the
// last bits, where its bit is the higher the earlier its pair: so a vector shifts the bits of all
// eight pairs to the top of their bytes one after the other, and one instruction puts a bit and its
// upper byte together as a 16-bit integer, 128 times the weight. Rows stand in the order in which that
// instruction takes them.
#pragma once

#include <cstdint>

namespace micronet {

constexpr int64_t kGroupPairs = 8, kPairBytes = 32, kGroupBytes = (kGroupPairs + 1) * kPairBytes;

// Where in the matrix a pair's group begins, and where the pair's upper bytes do.
inline int64_t group_of(int64_t pair) { return pair / kGroupPairs * kGroupBytes; }
inline int64_t upper_of(int64_t pair) { return group_of(pair) + (1 + pair % kGroupPairs) * kPairBytes; }
// A weight's place among the bytes of a pair, for a row of a panel and the first or second column.
inline int64_t place_in_pair(int64_t row, int64_t column) {
  return row % 4 * 2 + row / 4 % 2 * 16 + row / 8 * 8 + column;
}
// The last bit's place in its byte.
inline int last_bit(int64_t pair) { return 7 - int(pair % kGroupPairs); }

// Bytes that a matrix of so many pairs takes.
inline int64_t nine_bytes(int64_t pairs) { return group_of(pairs + kGroupPairs - 1); }

}  // namespace micronet
