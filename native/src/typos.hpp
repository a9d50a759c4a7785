// Beginnings of words that someone may have meant who typed others (runtime/typos.py).
//
// An error is a wrong letter, one too many, one missing, or two letters swapped. A letter beside the right one on the
// keyboard, and swapped letters, cost half as much as any other error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "threads.hpp"
#include "unicode.hpp"

namespace micronet {

// Costs are counted in halves of an error.
constexpr int kSlip = 1, kError = 2;

struct Beginning {
  std::string text;  // in small letters
  int cost;
};

// Words in small letters, sorted, so that those with one beginning are side by side.
class Beginnings {
 public:
  Beginnings() = default;
  explicit Beginnings(const std::vector<std::string>& words);  // in small letters, none of them empty

  void add(std::string_view word);  // in small letters, not empty; does nothing to one that is there

  // Beginnings of words that cost at most `limit`, in the order in which they are found; the search ends after a
  // number of steps.
  std::vector<Beginning> near(const Text32& typed, int limit) const;

  size_t size() const { return words_.size(); }
  std::string_view word(size_t place) const { return {text_.data() + words_[place].start, words_[place].size}; }
  // The first of words low … high - 1, which are the same before byte `depth`, that has `byte` there or more.
  size_t first_with(size_t depth, int byte, size_t low, size_t high) const;

 private:
  struct Span {
    uint32_t start, size;  // in text_
  };
  std::string text_;         // all words; their bytes sort as their characters do
  std::vector<Span> words_;  // in order
};

// Those of a vocabulary, made at the first question.
struct SharedBeginnings {
  Once made;
  Beginnings index;
};

}  // namespace micronet
