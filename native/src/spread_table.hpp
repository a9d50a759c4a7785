// Indexes for a byte shuffle that puts zeros between numbers. Shared by all kernel sets whose shuffle gives zero for
// indexes out of range.
#pragma once

#include <cstdint>

namespace {

// For each mask of 8 bits, the bytes that go to 8 numbers of 16 bits, in order; −128 gives a zero.
struct SpreadTable {
  int8_t places[256][16];
  constexpr SpreadTable() : places() {
    for (int mask = 0; mask < 256; ++mask) {
      int8_t from = 0;
      for (int i = 0; i < 8; ++i) {
        const bool set = mask >> i & 1;
        places[mask][2 * i] = set ? from++ : int8_t(-128);
        places[mask][2 * i + 1] = set ? from++ : int8_t(-128);
      }
    }
  }
};
constexpr SpreadTable kSpread;

}  // namespace
