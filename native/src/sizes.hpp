// Sizes of memory that are computed from numbers in a file. None may overflow, even with 32-bit pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

namespace micronet {

// The largest size of one allocation: pointer differences within it must be representable, and rounding it up to whole
// large pages must not overflow.
constexpr uint64_t kLargestMemory = uint64_t(std::numeric_limits<std::ptrdiff_t>::max()) - (uint64_t{4} << 20);

// Return the bytes of `count` elements of `each` bytes; throws std::bad_alloc if they are too many for this platform.
inline std::size_t checked_bytes(int64_t count, std::size_t each) {
  uint64_t bytes;
  if (count < 0 || __builtin_mul_overflow(uint64_t(count), uint64_t(each), &bytes) || bytes > kLargestMemory)
    throw std::bad_alloc();
  return std::size_t(bytes);
}

// Return a · b for non-negative numbers, or `most` if the product is larger.
inline int64_t product_up_to(int64_t a, int64_t b, int64_t most) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) || product > most ? most : product;
}

}  // namespace micronet
