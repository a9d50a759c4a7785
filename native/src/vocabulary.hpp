// The words of a model: a table of where each begins in the file, and a hash table. The text stays in the file.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "bytes.hpp"
#include "threads.hpp"

namespace micronet {

class Vocabulary {
 public:
  Vocabulary() = default;
  // `text`: `count` words, each followed by a line feed; throws Failure for any other text.
  Vocabulary(Bytes text, int64_t count);

  int32_t size() const { return count_; }
  Bytes text() const { return text_; }
  std::string_view word(int32_t id) const {
    const uint32_t begin = starts_[id];
    return {reinterpret_cast<const char*>(text_.data) + begin, starts_[id + 1] - begin - 1};
  }
  int32_t find(std::string_view word) const;  // -1 if the vocabulary lacks it
  // Return the ids of all words that begin with a prefix, in the order of the words' bytes; sorts them on first use.
  std::pair<const int32_t*, const int32_t*> beginning_with(std::string_view prefix) const;

 private:
  // Fill the hash table; return false if too many words collide.
  bool index();
  // Use the sorted list instead of the table, for words that collide; throws Failure if two are the same.
  void give_up_table();
  const std::vector<int32_t>& sorted() const;
  // Return the slot that holds the word, or the free slot for it; counts `probes` down.
  uint64_t slot_of(std::string_view word, uint64_t hash, int64_t& probes) const;

  Bytes text_;
  int32_t count_ = 0;
  Buffer<uint32_t> starts_;  // (count + 1)
  Buffer<uint64_t> table_;   // a word's hash (high half) and id + 1, or 0; a power of two
  uint64_t mask_ = 0;
  // The ids in the order of the words' bytes, made on first use. Shared, because a flag cannot be moved.
  struct Sorted {
    Once made;
    std::vector<int32_t> ids;
  };
  std::shared_ptr<Sorted> sorted_ = std::make_shared<Sorted>();
};

}  // namespace micronet
