// Types of the text-level C API that several of its files use.
#pragma once

#include "api_guard.hpp"
#include "text.hpp"

struct mn_text {
  micronet::Text text;
};

struct mn_words {
  struct Entry {
    std::string text, piece;
    double number;
  };
  std::vector<Entry> entries;
  std::string replaces;
};

namespace micronet {

inline Text32 text_of(const char* utf8, size_t size) {
  check(utf8 || !size);
  return decode_utf8({utf8, size});
}

}  // namespace micronet
