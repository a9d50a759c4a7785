// A model of how words are spelled (docs/format.md): the probability of any string outside the vocabulary.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "bytes.hpp"

namespace micronet {

// An interpolated n-gram model of bytes, as a trie in breadth-first order.
class Spelling {
 public:
  Spelling() = default;
  explicit Spelling(Bytes data);  // checks everything; throws Failure

  bool there() const { return order_ != 0; }
  // Return the natural logarithm of a word's probability among the strings outside the vocabulary.
  double log_probability(std::string_view word) const;

 private:
  struct Node {
    uint32_t first = 0;  // its first child
    uint32_t children = 0;
    uint32_t count = 0, rest = 0;
    uint64_t total = 0;  // of the children's counts and the rest
    uint8_t symbol = 0;
  };

  const Node* child(const Node& node, uint8_t symbol) const;
  double chance(const uint8_t* context, int64_t length, uint8_t symbol) const;

  int64_t order_ = 0;
  double outside_ = 1;
  std::vector<double> discounts_;
  std::vector<Node> nodes_;
};

}  // namespace micronet
