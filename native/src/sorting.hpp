// Sorting by a total order, so that every algorithm gives the same result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace micronet {

template <class Place, class Less>
void sort_all(Place begin, Place end, Less less) {
#if defined(__wasm__)  // a third of the code of std::sort
  std::make_heap(begin, end, less);
  std::sort_heap(begin, end, less);
#else
  std::sort(begin, end, less);
#endif
}

// A text to sort, and what it belongs to. Its first eight bytes as a number decide most comparisons.
struct Headed {
  std::string_view text;
  int32_t id;
#if defined(__wasm__)  // there a small module matters more than speed
  Headed(std::string_view given, int32_t number) : text(given), id(number) {}
  bool operator<(const Headed& other) const { return text < other.text; }
#else
  uint64_t head = 0;
  Headed(std::string_view given, int32_t number) : text(given), id(number) {
    for (std::size_t i = 0; i < 8; ++i) head = head << 8 | (i < text.size() ? uint8_t(text[i]) : 0u);
  }
  bool operator<(const Headed& other) const { return head != other.head ? head < other.head : text < other.text; }
#endif
};

void sort_texts(std::vector<Headed>& texts);  // in vocabulary.cpp

}  // namespace micronet
