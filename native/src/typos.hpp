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
  explicit Beginnings(std::vector<std::string> words);  // in small letters, none of them empty

  // Beginnings of words that cost at most `limit`, in the order in which they are found; the search ends after a
  // number of steps.
  std::vector<Beginning> near(const Text32& typed, int limit) const;

  size_t size() const { return starts_.size() - 1; }
  std::string_view word(size_t place) const {
    return {text_.data() + starts_[place], size_t(starts_[place + 1] - starts_[place])};
  }
  // The first word from `low` to `high` that does not come before a text.
  size_t first_from(std::string_view text, size_t low, size_t high) const;

 private:
  std::string text_;  // all words; their bytes sort as their characters do
  std::vector<uint32_t> starts_ = {0};
};

// Those of a vocabulary, made at the first question.
struct SharedBeginnings {
  Once made;
  Beginnings index;
};

}  // namespace micronet
