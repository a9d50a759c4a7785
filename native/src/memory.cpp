#include "memory.hpp"

#include <algorithm>

#include "forward.hpp"

namespace micronet {

namespace {

// Return a larger buffer that begins with the same numbers.
template <class T>
Buffer<T> grown(const Buffer<T>& from, int64_t size) {
  Buffer<T> to(size);
  if (from.size()) std::memcpy(to.data(), from.data(), size_t(from.size()) * sizeof(T));
  return to;
}

}  // namespace

Memory::Memory(const Model& model) : model_(&model) {
  const int64_t size = model.config.cache;
  if (!size) return;
  rows_limit_ = round_up(size + kLargestChunk + 1, kBlock);
  states_.columns = model.config.width;
  if (model.integer_cache) {
    states_.bits = model.hidden.bits;
    // A panel takes whole groups of 9-bit weights: no two panels share a byte, so threads can write in parallel.
    states_.columns = padded(model.config.width);
    states_.scales = Buffer<float>(kLanes);
    states_.scales[0] = model.hidden.scale * model.theta;
  }
}

void Memory::reserve(int64_t first, int64_t count) {
  if (!used()) return;
  const int64_t needed = std::min(rows_limit_, first + count);
  if (needed <= states_.rows) return index_.reserve(states_.rows);
  const int64_t rows = std::min(rows_limit_, round_up(std::max(needed, 2 * states_.rows), kLanes));
  index_.reserve(rows);  // harmless if something below throws
  Buffer<int32_t> words = grown(words_, rows);
  if (!model_->integer_cache) {
    states_.floats = grown(states_.floats, rows * states_.columns);
  } else {
    const int64_t bytes = matrix_bytes(rows, states_.columns, states_.bits);
    if (states_.bits <= 8) states_.bytes = grown(states_.bytes, bytes);
    else if (states_.bits == 9) states_.nines = grown(states_.nines, bytes);
    else states_.shorts = grown(states_.shorts, bytes / 2);
  }
  words_ = std::move(words);
  states_.rows = rows;
}

void Memory::put(int64_t j, const float* values, const int16_t* integers) {
  if (!used()) return;
  const int64_t row = j % rows_limit_;
  for (int64_t c = 0; c < model_->config.width; ++c) {
    if (model_->integer_cache) states_.set_integer(row, c, integers[c]);
    else states_.floats[states_.float_place(row, c)] = values[c];
  }
}

void Memory::get(int64_t j, float* values, int16_t* integers) const {
  const int64_t row = j % rows_limit_;
  for (int64_t c = 0; c < model_->config.width; ++c) {
    if (model_->integer_cache) integers[c] = states_.integer(row, c);
    else values[c] = states_.floats[states_.float_place(row, c)];
  }
}

int64_t Memory::first_for(int64_t t) const { return std::max<int64_t>(0, t - model_->config.cache); }

}  // namespace micronet
