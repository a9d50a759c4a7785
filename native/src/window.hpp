// Keys and values of a text's last tokens, for all layers.
//
// Every token has a place. Places are consecutive, so that a query's window is contiguous in memory. When no
// place is left, the last C - 1 tokens move to the front. Memory grows with the text until it holds about two
// windows, so a file that claims a huge context costs nothing until the context is used.
#pragma once

#include <vector>

#include "buffer.hpp"
#include "linear.hpp"
#include "model.hpp"

namespace micronet {

// Keys and values of one layer: integers if their sums are exact and fit in 32 bits, else floats.
struct LayerWindow {
  Buffer<int16_t> integer_keys;    // (heads, pairs of key_width, stride, 2)
  Buffer<float> float_keys;        // (heads, key_width, stride)
  // value_width() columns per place; kernels read up to a multiple of 16, into the next place.
  Buffer<int16_t> integer_values;  // (heads, places / 2, value_width(), 2)
  Buffer<float> float_values;      // (heads, places, value_width())
};

class Window {
 public:
  // A text's keys and values may always take this many bytes; a larger file allows more (Unpacker::kLargestFactor).
  static constexpr int64_t kAlwaysAllowed = int64_t{256} << 20;

  explicit Window(const Model& model);

  // Make room for `count` more tokens and return the place of the first. Throws before it changes anything.
  int64_t reserve(int64_t count);
  // Count the reserved tokens as read.
  void advance(int64_t count) { end_ += count; }

  // Write a token's keys and values. qkv: rows of queries, keys, values. May run on several threads.
  void put(int64_t layer, int64_t place, const float* values, const int16_t* integers);
  // Return the number of places before the next token that it can attend to.
  int64_t kept() const;

  int64_t places() const { return places_; }
  int64_t stride() const { return places_ + 2 * kLanes; }  // kernels read past the last place
  int64_t value_width() const { return value_width_; }
  const LayerWindow& layer(int64_t l) const { return layers_[size_t(l)]; }
  int64_t end() const { return end_; }

  // A token's keys and values of one layer, in the order of `put` without the queries, for saving.
  void get(int64_t layer, int64_t place, float* values, int16_t* integers) const;

 private:
  LayerWindow allocate(int64_t layer, int64_t places) const;
  void copy(const LayerWindow& from, int64_t from_places, int64_t first, int64_t count, LayerWindow& to,
            int64_t to_places) const;
  int64_t bytes(int64_t places) const;

  const Model* model_;
  int64_t value_width_;           // rounded up to a multiple of 8
  int64_t places_ = 0, end_ = 0;  // the number of places, and the next free one
  std::vector<LayerWindow> layers_;
};

}  // namespace micronet
