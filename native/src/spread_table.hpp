// How a byte shuffle puts zeros between numbers; all sets whose shuffles make zeros of large places share it.
#pragma once

#include <cstdint>

namespace {

// For each mask of 8 bits the bytes that go to 8 places of 16 bits, in order; −128 makes a zero.
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
