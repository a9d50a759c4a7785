#include "memory.hpp"

#include <algorithm>

#include "forward.hpp"

namespace micronet {

Memory::Memory(const Model& model) : model_(&model) {
  const int64_t size = model.config.cache;
  if (!size) return;
  rows_limit_ = round_up(size + kLargestChunk + 1, kBlock);
  states_.columns = model.config.width;
  if (model.integer_cache) {
    states_.bits = model.hidden.bits <= 9 ? 9 : model.hidden.bits;  // held in 16 bits
    states_.steps = Buffer<float>(kLanes);
    states_.steps[0] = model.hidden.step * model.theta;
  }
}

void Memory::reserve(int64_t first, int64_t count) {
  if (!used()) return;
  const int64_t needed = std::min(rows_limit_, first + count);
  if (needed <= states_.rows) return;
  const int64_t rows = std::min(rows_limit_, round_up(std::max(needed, 2 * states_.rows), kLanes));
  Buffer<int32_t> words(rows);
  if (words_.size()) std::memcpy(words.data(), words_.data(), size_t(words_.size()) * 4);
  if (model_->integer_cache) {
    Buffer<int16_t> grown(rows * states_.pairs() * 2);
    if (states_.shorts.size()) std::memcpy(grown.data(), states_.shorts.data(), size_t(states_.shorts.size()) * 2);
    states_.shorts = std::move(grown);
  } else {
    Buffer<float> grown(rows * states_.columns);
    if (states_.floats.size()) std::memcpy(grown.data(), states_.floats.data(), size_t(states_.floats.size()) * 4);
    states_.floats = std::move(grown);
  }
  words_ = std::move(words);
  states_.rows = rows;
}

void Memory::put(int64_t j, const float* values, const int16_t* integers) {
  if (!used()) return;
  const int64_t row = j % rows_limit_;
  for (int64_t c = 0; c < states_.columns; ++c) {
    if (model_->integer_cache) states_.shorts[states_.integer_place(row, c)] = integers[c];
    else states_.floats[states_.float_place(row, c)] = values[c];
  }
}

void Memory::get(int64_t j, float* values, int16_t* integers) const {
  const int64_t row = j % rows_limit_;
  for (int64_t c = 0; c < states_.columns; ++c) {
    if (model_->integer_cache) integers[c] = states_.shorts[states_.integer_place(row, c)];
    else values[c] = states_.floats[states_.float_place(row, c)];
  }
}

int64_t Memory::first_for(int64_t t) const { return std::max<int64_t>(0, t - model_->config.cache); }

}  // namespace micronet
