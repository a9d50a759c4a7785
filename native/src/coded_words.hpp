// The vocabulary as prefix codes: what a word shares with the one before it, then byte after byte.
#pragma once

#include "buffer.hpp"
#include "bytes.hpp"

namespace micronet {

// Return `count` words, each followed by a line feed; throws Failure if the bytes are not that.
Buffer<uint8_t> decode_words(Bytes coded, int64_t count);

}  // namespace micronet
