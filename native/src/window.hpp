// Keys and values of a text's last tokens, for all layers.
//
// A token has a place; places follow each other, so that a query's window is one stretch of memory.
// When places run out, the last C - 1 tokens move to the front. Memory grows with the text until it
// holds about two windows, so a file that claims a huge context costs nothing before it is used.
#pragma once

#include <vector>

#include "buffer.hpp"
#include "linear.hpp"
#include "model.hpp"

namespace micronet {

// One layer's; integers where sums of them are exact and fit, else floats.
struct LayerWindow {
  Buffer<int16_t> integer_keys;    // (heads, pairs of key_width, stride, 2)
  Buffer<float> float_keys;        // (heads, key_width, stride)
  // Of value_width() columns; reads go on to a multiple of 16, into the next place's.
  Buffer<int16_t> integer_values;  // (heads, places / 2, value_width(), 2)
  Buffer<float> float_values;      // (heads, places, value_width())
};

class Window {
 public:
  // A text may need this much memory for keys and values, or this many times the file.
  static constexpr int64_t kAlwaysAllowed = int64_t{256} << 20;

  explicit Window(const Model& model);

  // Makes room for `count` tokens more and gives the place of the first. Throws before it changes anything.
  int64_t reserve(int64_t count);
  // Tokens that were reserved count as read from now on.
  void advance(int64_t count) { end_ += count; }

  // Writes a token's keys and values. qkv: rows of queries, keys, values; may run on several threads.
  void put(int64_t layer, int64_t place, const float* values, const int16_t* integers);
  // The last places that the next token can see.
  int64_t kept() const;

  int64_t places() const { return places_; }
  int64_t stride() const { return places_ + 2 * kLanes; }  // reads go past the last place
  int64_t value_width() const { return value_width_; }
  const LayerWindow& layer(int64_t l) const { return layers_[size_t(l)]; }
  int64_t end() const { return end_; }

  // A token's keys and values of one layer, in the order of put (without queries); for saving.
  void get(int64_t layer, int64_t place, float* values, int16_t* integers) const;

 private:
  LayerWindow allocate(int64_t layer, int64_t places) const;
  void copy(const LayerWindow& from, int64_t from_places, int64_t first, int64_t count, LayerWindow& to,
            int64_t to_places) const;
  int64_t bytes(int64_t places) const;

  const Model* model_;
  int64_t value_width_;           // up to a multiple of 8
  int64_t places_ = 0, end_ = 0;  // how many there are, and the next free one
  std::vector<LayerWindow> layers_;
};

}  // namespace micronet
