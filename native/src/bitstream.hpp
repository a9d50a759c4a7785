// Elements of a packed tensor in their order: integers of b bits, or floats, with or without a mask.
#pragma once

#include <string>

#include "bytes.hpp"

namespace micronet {

// Integers of 2 to 16 bits in two's complement, the lowest bit of the lowest byte first.
class IntegerStream {
 public:
  // Checks that the bits behind the last element are 0; throws Failure.
  IntegerStream(Bytes bytes, int bits, int64_t count, const std::string& name);

  int16_t next() {
    const int64_t byte = bit_ >> 3;
    uint32_t word = 0;
    if (byte + 4 <= size_) {
      word = read_at<uint32_t>(data_ + byte);
    } else {
      for (int64_t i = byte; i < size_; ++i) word |= uint32_t(data_[i]) << 8 * (i - byte);
    }
    const uint32_t value = word >> (bit_ & 7) & mask_;
    bit_ += bits_;
    return int16_t(int32_t(value ^ sign_) - int32_t(sign_));
  }

 private:
  const uint8_t* data_;
  int64_t size_, bit_ = 0;
  int bits_;
  uint32_t mask_, sign_;
};

class FloatStream {
 public:
  explicit FloatStream(Bytes bytes) : data_(bytes.data) {}
  float next() {
    const auto value = read_at<float>(data_);
    data_ += 4;
    return value;
  }

 private:
  const uint8_t* data_;
};

// Checks a mask of n bits: as many bits as there are non-zeros, and 0 behind the last element.
void check_mask(Bytes mask, int64_t n, int64_t nonzeros, const std::string& name);

// Up to 64 bits of a mask from element `at` (a multiple of 64) on.
inline uint64_t mask_word(Bytes mask, int64_t at) {
  const size_t byte = size_t(at / 8);
  if (byte + 8 <= mask.size) return read_at<uint64_t>(mask.data + byte);
  uint64_t word = 0;
  std::memcpy(&word, mask.data + byte, mask.size - byte);
  return word;
}

}  // namespace micronet
