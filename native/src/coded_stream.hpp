// Reader of a tensor's integers as prefix codes, in blocks of 1,024 elements.
#pragma once

#include <string>

#include "prefix_code.hpp"

namespace micronet {

constexpr int kWidestCoded = 10;  // most bits of integers that are coded

class CodedStream {
 public:
  // `bytes`: code lengths, sizes of the blocks, blocks. Checks that they are consistent; throws Failure.
  CodedStream(Bytes bytes, int bits, int64_t count, const std::string& name);

  // Read the next `count` integers, which must not cross the end of a block.
  void next(int16_t* to, int64_t count);

 private:
  void begin_block();

  const std::string& name_;
  CodeTable table_;
  const uint8_t* sizes_;  // of the blocks, 16 bits each
  const uint8_t* block_;  // where the next block begins
  int64_t left_;          // elements after those of this block
  int64_t in_block_ = 0;  // elements of this block that are still to be read
  int largest_;           // the largest integer
  BitReader bits_;
};

}  // namespace micronet
