// A table of n-grams: the probability of a word after the last words, as docs/arithmetic.md defines it.
//
// The words after a context of k - 1 words form a group of order k, sorted. An entry of one order may be the
// context of a group of the next order. A group leaves a probability of 1 - Σ values to the context without its first
// word.
#pragma once

#include <vector>

#include "kernels.hpp"
#include "unpack.hpp"

namespace micronet {

class NGrams {
 public:
  static constexpr int64_t kLongest = 8;

  // The groups of all contexts that the last words form, each with the weight of its values.
  struct Context {
    struct Group {
      const int32_t* words;  // (count), increasing
      const float* values;
      int64_t count;
      float weight;
    };
    float alone = 0;  // the weight of words without a context
    int64_t found = 0;
    Group groups[kLongest];  // shorter contexts first
  };

  NGrams() = default;
  NGrams(Unpacker& unpacker, const Config& config);  // checks everything; throws Failure

  bool used() const { return !orders_.empty(); }
  // Return the largest number of words that a context has.
  int64_t kept() const { return int64_t(orders_.size()); }
  // Return the table's share s in its mixture with the softmax.
  double share() const { return share_; }

  // Return the context of the last `count` words, which end before `end`. Probabilities are multiplied by `scale`.
  Context find(const int32_t* end, int64_t count, double scale) const;
  float probability(const Context& context, int32_t word) const;
  void probabilities(const Context& context, float* out) const;  // (vocabulary)
  // Replace log P by log((1 − s) P + s P_table), for the words that follow tokens number first … of a text.
  void mix(const Kernels& kernels, const int32_t* words, int64_t first, int64_t tokens, float* log_probabilities) const;

 private:
  struct Order {
    Buffer<int32_t> words;
    Buffer<float> values;
    Buffer<int32_t> groups;  // number of the group of each entry of the order below, or -1
    Buffer<int64_t> starts;  // where groups begin, and the end
    Buffer<double> left;     // the probability that each group leaves to shorter contexts
    // Return the number of a word's entry in a group, or -1.
    int64_t find(int64_t group, int32_t word) const;
  };
  Order read_order(Unpacker& unpacker, int64_t number, int64_t below, int64_t count, const Config& config,
                   const Buffer<float>& values) const;
  int64_t group_of(const int32_t* context, int64_t length) const;

  double share_ = 0;
  Buffer<float> alone_;  // (vocabulary)
  std::vector<Order> orders_;
};

}  // namespace micronet
