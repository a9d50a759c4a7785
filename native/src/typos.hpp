// Beginnings of words that a person may have meant who made typing errors (runtime/typos.py).
//
// An error is a wrong letter, an extra letter, a missing letter, or two letters swapped. A letter next to the right one
// on the keyboard, and swapped letters, cost half as much as any other error.
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

  void add(std::string_view word);  // in small letters, not empty; does nothing if the word is already there

  // Return beginnings of words that cost at most `limit`, in the order in which they are found. The search ends after
  // a limited amount of work.
  std::vector<Beginning> near(const Text32& typed, int limit) const;

  size_t size() const { return words_.size(); }
  std::string_view word(size_t place) const { return {text_.data() + words_[place].start, words_[place].size}; }
  // Return the first of words low … high - 1 whose byte at `depth` is at least `byte`. These words have the same bytes
  // before `depth`.
  size_t first_with(size_t depth, int byte, size_t low, size_t high) const;

 private:
  struct Span {
    uint32_t start, size;  // in text_
  };
  std::string text_;         // all words; their bytes sort as their characters do
  std::vector<Span> words_;  // in order
};

// The beginnings of a vocabulary, made on first use.
struct SharedBeginnings {
  Once made;
  Beginnings index;
};

}  // namespace micronet
