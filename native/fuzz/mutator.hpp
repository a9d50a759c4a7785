// Mutations of packed files that know the format: beside bits, bytes and lengths they change numbers in the
// header, copy parts of it, and put special floats into tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace fuzz {

using Bytes = std::vector<uint8_t>;

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  void mutate(Bytes& bytes) {
    for (size_t times = 1 + below(3); times; --times) {
      if (bytes.size() < 16) return;
      switch (below(10)) {
        case 0: bytes[below(bytes.size())] ^= uint8_t(1 << below(8)); break;
        case 1: bytes[below(bytes.size())] = uint8_t(below(256)); break;
        case 2: bytes.resize(below(bytes.size())); break;
        case 3: bytes.insert(bytes.begin() + long(below(bytes.size())), below(9), uint8_t(below(256))); break;
        case 4: case 5: change_number(bytes); break;
        case 6: copy_text(bytes); break;
        case 7: case 8: put_float(bytes); break;
        default: flip_data(bytes); break;
      }
    }
  }

 private:
  size_t below(size_t n) { return n ? size_t(random_() % n) : 0; }

  size_t header_end(const Bytes& bytes) {
    uint64_t length;
    std::memcpy(&length, bytes.data(), 8);
    return length < bytes.size() - 8 ? size_t(length) + 8 : bytes.size();
  }

  // Replace part of the header and correct its length, so that the rest is still read.
  void replace(Bytes& bytes, size_t at, size_t count, const std::string& text) {
    const size_t end = header_end(bytes);
    bytes.erase(bytes.begin() + long(at), bytes.begin() + long(at + count));
    bytes.insert(bytes.begin() + long(at), text.begin(), text.end());
    const uint64_t length = end - count + text.size() - 8;
    std::memcpy(bytes.data(), &length, 8);
  }

  void change_number(Bytes& bytes) {
    const size_t end = header_end(bytes);
    size_t at = 8 + below(end - 8);
    while (at < end && (bytes[at] < '0' || bytes[at] > '9')) ++at;
    size_t stop = at;
    while (stop < end && bytes[stop] >= '0' && bytes[stop] <= '9') ++stop;
    if (at == stop) return;
    const std::string old(bytes.begin() + long(at), bytes.begin() + long(stop));
    const long value = old.size() < 16 ? std::atol(old.c_str()) : 7;
    const std::string choices[] = {"0", "1", std::to_string(value + 1), std::to_string(value - 1), std::to_string(value * 2),
                                   std::to_string(value * 8), "2147483647", "4294967296", "9007199254740992",
                                   "18446744073709551616", "-1", "32", "16", "1e9", "null", "[]"};
    replace(bytes, at, stop - at, choices[below(16)]);
  }

  void copy_text(Bytes& bytes) {
    const size_t end = header_end(bytes);
    const size_t from = 8 + below(end - 8), size = std::min(below(80), end - from);
    const std::string text(bytes.begin() + long(from), bytes.begin() + long(from + size));
    const size_t to = 8 + below(end - 8);
    replace(bytes, to, below(2) ? std::min(size, end - to) : 0, text);
  }

  void put_float(Bytes& bytes) {
    const size_t begin = header_end(bytes);
    if (begin + 4 > bytes.size()) return;
    const uint32_t images[] = {0x7fc00000, 0x7f800000, 0xff800000, 0x80000000, 0, 1, 0x7f7fffff, 0xff7fffff,
                               0x3f800001, 0xbf800000, 0x0d800000, 0x71800000, 0x00800000, 0x5f000000};
    const uint32_t image = images[below(14)];
    std::memcpy(bytes.data() + begin + below((bytes.size() - begin) / 4) * 4, &image, 4);
  }

  void flip_data(Bytes& bytes) {
    const size_t begin = header_end(bytes);
    if (begin >= bytes.size()) return;
    for (size_t i = 1 + below(8); i; --i) bytes[begin + below(bytes.size() - begin)] ^= uint8_t(1 << below(8));
  }

  std::mt19937 random_;
};

}  // namespace fuzz
