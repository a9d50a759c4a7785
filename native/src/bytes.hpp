// A view of memory owned elsewhere, and little-endian numbers in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "packed files are little-endian, and so must the processor be"
#endif

namespace micronet {

struct Bytes {
  const uint8_t* data = nullptr;
  size_t size = 0;

  Bytes part(size_t begin, size_t end) const { return {data + begin, end - begin}; }
};

// Read a number at any address: parts of a file are not aligned.
template <class T>
T read_at(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Hash bytes, to distinguish files and to detect damage. It does not protect against an adversary.
inline uint64_t hash_bytes(Bytes bytes, uint64_t seed = 0) {
  constexpr uint64_t kPrime = 0x9E3779B97F4A7C15u;
  auto mix = [](uint64_t h, uint64_t v) {
    h = (h ^ v) * kPrime;
    return h ^ (h >> 29);
  };
  uint64_t lanes[4] = {seed + 1, seed + 2, seed + 3, seed + 4};
  size_t i = 0;
  for (; i + 32 <= bytes.size; i += 32)
    for (size_t lane = 0; lane < 4; ++lane)
      lanes[lane] = mix(lanes[lane], read_at<uint64_t>(bytes.data + i + 8 * lane));
  uint64_t h = bytes.size;
  for (uint64_t lane : lanes) h = mix(h, lane);
  for (; i + 8 <= bytes.size; i += 8) h = mix(h, read_at<uint64_t>(bytes.data + i));
  uint64_t last = 0;
  if (i < bytes.size) std::memcpy(&last, bytes.data + i, bytes.size - i);
  h = mix(h, last);
  return mix(h, h >> 32);
}

}  // namespace micronet
