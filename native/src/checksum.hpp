// The checksum of packed files: 64 bits that detect accidental damage, but not an adversary (docs/format.md).
//
// If one word changes, the result is certain to change, because every operation is one-to-one in that word. The sums
// within a block do not depend on each other, so the compiler can compute several at once.
#pragma once

#include "bytes.hpp"

namespace micronet {

inline uint64_t checksum(Bytes bytes) {
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15u, kFactor = 0xD6E8FEB86659FD93u;
  constexpr size_t kBlock = 8192 * 8;  // bytes
  auto mix = [](uint64_t x) {
    x = (x ^ x >> 32) * kFactor;
    x = (x ^ x >> 29) * kStep;
    return x ^ x >> 32;
  };
  auto spread = [](uint64_t x) {
    x = (x ^ x >> 32) * kFactor;
    return x ^ x >> 29;
  };
  uint64_t result = mix(bytes.size);
  for (size_t begin = 0; begin < bytes.size; begin += kBlock) {
    const size_t size = bytes.size - begin < kBlock ? bytes.size - begin : kBlock;
    const uint8_t* block = bytes.data + begin;
    uint64_t sum = 0, place = 0;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) sum += spread(read_at<uint64_t>(block + i) + (place += kStep));
    if (i < size) {
      uint64_t last = 0;
      std::memcpy(&last, block + i, size - i);
      sum += spread(last + (place += kStep));
    }
    result = mix(result + sum);
  }
  return result;
}

}  // namespace micronet
