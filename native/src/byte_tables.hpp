// The tables of unicode_tables.hpp, decoded from their compact bytes so that they can be searched. Each is decoded on
// first use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "unicode.hpp"

namespace micronet {

// Numbers stored with 7 bits per byte, the lowest first.
class Numbers {
 public:
  template <size_t N>
  explicit Numbers(const uint8_t (&bytes)[N]) : at_(bytes), end_(bytes + N) {}
  bool more() const { return at_ != end_; }
  uint32_t next() {
    uint32_t number = 0;
    for (int shift = 0;; shift += 7) {
      number |= uint32_t(*at_ & 127) << shift;
      if (*at_++ < 128) return number;
    }
  }

 private:
  const uint8_t *at_, *end_;
};

// Decode a number that may be negative from its zigzag code.
inline int32_t from_zigzag(uint32_t value) { return value % 2 ? -int32_t(value / 2) - 1 : int32_t(value / 2); }

// A set of characters, stored as the characters at which its ranges begin and end.
class CharacterSet {
 public:
  explicit CharacterSet(Numbers numbers) {
    uint32_t place = 0;
    while (numbers.more()) places_.push_back(place += numbers.next());
  }
  bool has(char32_t c) const {
    return (std::upper_bound(places_.begin(), places_.end(), uint32_t(c)) - places_.begin()) % 2 == 1;
  }

 private:
  std::vector<uint32_t> places_;
};

// A map from some characters to numbers, stored as runs of characters that are one or two apart.
class CharacterMap {
 public:
  explicit CharacterMap(Numbers numbers) {
    uint32_t end = 0;
    while (numbers.more()) {
      const uint32_t first = end + numbers.next(), length = numbers.next(), value = numbers.next();
      const uint32_t stride = length % 2 + 1, last = first + stride * (length / 2);
      runs_.push_back({first, last, stride, from_zigzag(value)});
      end = last + 1;
    }
  }
  // Return whether the character has a number, and which one.
  bool find(char32_t c, int32_t* value = nullptr) const {
    auto run = std::upper_bound(runs_.begin(), runs_.end(), uint32_t(c),
                                [](uint32_t code, const Run& other) { return code < other.first; });
    if (run == runs_.begin()) return false;
    --run;
    if (c > run->last || (c - run->first) % run->stride) return false;
    if (value) *value = run->value;
    return true;
  }

 private:
  struct Run {
    uint32_t first, last, stride;
    int32_t value;
  };
  std::vector<Run> runs_;
};

// A map from some characters to several characters each.
class LongMap {
 public:
  explicit LongMap(Numbers numbers) {
    uint32_t code = 0;
    while (numbers.more()) {
      code += numbers.next();
      entries_.push_back({code, {}});
      for (uint32_t count = numbers.next(); count; --count) entries_.back().text += char32_t(numbers.next());
    }
  }
  const Text32* find(char32_t c) const {
    const auto entry = std::lower_bound(entries_.begin(), entries_.end(), uint32_t(c),
                                        [](const Entry& other, uint32_t code) { return other.code < code; });
    return entry != entries_.end() && entry->code == c ? &entry->text : nullptr;
  }

 private:
  struct Entry {
    uint32_t code;
    Text32 text;
  };
  std::vector<Entry> entries_;
};

}  // namespace micronet
