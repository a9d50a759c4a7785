// Readers of a packed tensor's bits, in order: integers of b bits, floats, and the mask of a sparse tensor.
#pragma once

#include <string>

#include "bytes.hpp"

namespace micronet {

// Integers of 2 to 16 bits in two's complement, the lowest bit of the lowest byte first.
class IntegerStream {
 public:
  // Check that the bits after the last element are 0; throws Failure.
  IntegerStream(Bytes bytes, int bits, int64_t count, const std::string& name);

  // Read the next `count` integers.
  void next(int16_t* to, int64_t count);

 private:
  const uint8_t* data_;
  int64_t size_, bit_ = 0;
  int bits_;
  uint32_t mask_, sign_;
};

class FloatStream {
 public:
  explicit FloatStream(Bytes bytes) : data_(bytes.data) {}
  void next(float* to, int64_t count) {
    std::memcpy(to, data_, size_t(count) * sizeof(float));
    data_ += size_t(count) * sizeof(float);
  }

 private:
  const uint8_t* data_;
};

// Check a mask of n bits: one bit is set per non-zero, and the bits after the last element are 0.
void check_mask(Bytes mask, int64_t n, int64_t nonzeros, const std::string& name);

// Return up to 64 bits of a mask, beginning at element `at` (a multiple of 64).
inline uint64_t mask_word(Bytes mask, int64_t at) {
  const size_t byte = size_t(at / 8);
  if (byte + 8 <= mask.size) return read_at<uint64_t>(mask.data + byte);
  uint64_t word = 0;
  std::memcpy(&word, mask.data + byte, mask.size - byte);
  return word;
}

}  // namespace micronet
