// Sizes of memory that are computed from numbers of a file: none may wrap, on 32 bits either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

namespace micronet {

// What one piece of memory may take: pointers into it must have a difference, and rounding it up to whole
// large pages must not wrap.
constexpr uint64_t kLargestMemory = uint64_t(std::numeric_limits<std::ptrdiff_t>::max()) - (uint64_t{4} << 20);

// The bytes of `count` elements of `each` bytes; std::bad_alloc where this platform cannot have them.
inline std::size_t checked_bytes(int64_t count, std::size_t each) {
  uint64_t bytes;
  if (count < 0 || __builtin_mul_overflow(uint64_t(count), uint64_t(each), &bytes) || bytes > kLargestMemory)
    throw std::bad_alloc();
  return std::size_t(bytes);
}

// a · b for numbers that are not negative, `most` where the product is more.
inline int64_t product_up_to(int64_t a, int64_t b, int64_t most) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) || product > most ? most : product;
}

}  // namespace micronet
