// Prefix codes of at most 12 bits, defined by their lengths (docs/format.md).
#pragma once

#include <vector>

#include "bytes.hpp"

namespace micronet {

constexpr int kLongestCode = 12;

// For each value of the next 12 bits: the symbol times 16 plus the length of its code; 0 if no code begins like this.
using CodeTable = std::vector<uint16_t>;  // (2^12)

// Return the length of a symbol's code: 4 bits each, the lower half of a byte first.
inline int code_length(const uint8_t* lengths, int64_t symbol) {
  return symbol % 2 ? lengths[symbol / 2] >> 4 : lengths[symbol / 2] & 15;
}

// Make the table of a code. `symbols` are the numbers of the symbols whose lengths are stored, increasing; nullptr
// for 0, 1, 2, … Lengths must be those of a complete code; with `alone`, one symbol of one bit is also allowed.
// `name`: the tensor's name for messages; throws Failure.
CodeTable read_code(const uint8_t* lengths, int64_t count, const uint8_t* symbols, bool alone, const char* name);

// A reader of bits, from the lowest bit of the lowest byte on. Zeros follow the last byte.
class BitReader {
 public:
  BitReader() = default;
  explicit BitReader(Bytes bytes) : bytes_(bytes) {}

  // Return the next symbol, or -1 if the next bits are not a code.
  int next(const CodeTable& table) {
    if (held_ < kLongestCode) refill();
    const uint32_t entry = table[window_ & ((1u << kLongestCode) - 1)];
    const int length = int(entry & 15);
    window_ >>= length;
    held_ -= length;
    return length ? int(entry >> 4) : -1;
  }
  // Return whether the bits that were read end within the last byte, and no bit after them is set.
  bool at_end() const {
    const int64_t used = 8 * int64_t(at_) - held_;
    return (used + 7) / 8 == int64_t(bytes_.size) && !window_;
  }

 private:
  void refill() {
    const size_t left = at_ < bytes_.size ? bytes_.size - at_ : 0;
    uint64_t more = 0;
    std::memcpy(&more, bytes_.data + (left ? at_ : 0), left < 6 ? left : 6);
    window_ |= more << held_;  // at most 11 + 48 bits
    held_ += 48;
    at_ += 6;
  }

  Bytes bytes_;
  size_t at_ = 0;         // the first byte that is not in the window
  uint64_t window_ = 0;
  int held_ = 0;          // bits of the window, zeros after the last byte included
};

}  // namespace micronet
