// The words of a model, which stay in the file: a table of where they begin, and a hash table.
#pragma once

#include <string_view>

#include "buffer.hpp"
#include "bytes.hpp"

namespace micronet {

class Vocabulary {
 public:
  Vocabulary() = default;
  // `text`: `count` words, each followed by a line feed; throws Failure where they are not.
  Vocabulary(Bytes text, int64_t count);

  int32_t size() const { return count_; }
  Bytes text() const { return text_; }
  std::string_view word(int32_t id) const {
    const uint32_t begin = starts_[id];
    return {reinterpret_cast<const char*>(text_.data) + begin, starts_[id + 1] - begin - 1};
  }
  int32_t find(std::string_view word) const;  // -1 where it is not there

 private:
  void index();
  // The slot that holds the word, or the free one for it; counts `probes` down.
  uint64_t slot_of(std::string_view word, uint64_t hash, int64_t& probes) const;

  Bytes text_;
  int32_t count_ = 0;
  Buffer<uint32_t> starts_;  // (count + 1)
  Buffer<uint64_t> table_;   // a word's hash (high half) and id + 1, or 0; a power of two
  uint64_t mask_ = 0;
};

}  // namespace micronet
