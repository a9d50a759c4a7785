// The vocabulary as prefix codes: how many bytes a word shares with the one before it, then its other bytes in order.
#pragma once

#include "buffer.hpp"
#include "bytes.hpp"

namespace micronet {

// Return `count` words, each followed by a line feed; throws Failure if the bytes do not encode them.
Buffer<uint8_t> decode_words(Bytes coded, int64_t count);

}  // namespace micronet
