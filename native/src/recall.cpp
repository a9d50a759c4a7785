#include "recall.hpp"

#include <algorithm>
#include <cmath>

#include "softmax.hpp"

namespace micronet {

namespace {

// θ is in the scales of integer states; for floats it goes into the query.
Batch query_of(const Model& model, const Batch& hidden, States& room) {
  if (model.integer_cache) return hidden;
  room.resize(hidden.tokens, hidden.columns);
  for (int64_t t = 0; t < hidden.tokens; ++t)
    for (int64_t c = 0; c < hidden.columns; ++c)
      room.row(t)[c] = model.theta * hidden.values[t * hidden.stride + c];
  return room.batch(hidden.tokens);
}

}  // namespace

float Votes::share(const Memory& memory, int32_t word) const {
  if (words_.empty()) return 0;
  const int32_t slot = memory.index().slot_of_word(word);
  return slot < 0 ? 0.0f : by_slot_[size_t(slot)];
}

void Votes::count(const Model& model, const Memory& memory, int64_t t, const Batch& hidden, Scratch& scratch) {
  words_.clear();
  shares_.clear();
  if (!memory.used()) return;
  const int64_t first = memory.first_for(t), n = t - first;
  if (!n) return;
  const int64_t begin = first / Memory::kBlock * Memory::kBlock;
  similarities_.at_least(padded(t - begin) + Memory::kBlock);
  float* similarities = similarities_.data();  // of state `begin` and those after it
  States room;
  const Product product(model.kernels, memory.states(), query_of(model, hidden, room), false, scratch);
  float most = -std::numeric_limits<float>::infinity();
  for (int64_t block = begin; block < t; block += Memory::kBlock) {
    const int64_t from = std::max(block, first) / kLanes * kLanes, to = std::min(block + Memory::kBlock, t);
    product.rows((memory.row_of(block) + from - block) / kLanes, (padded(to) - from) / kLanes, nullptr,
                 similarities + from - begin, Memory::kBlock);
    const int64_t own = std::max(from, first);
    most = std::max(most, model.kernels.largest(similarities + own - begin, to - own));
  }
  float* exponentials = similarities + first - begin;
  double sum = 0;
  for (int64_t i = 0; i < n; i += 4096)
    sum += double(model.kernels.exp_store(exponentials + i, std::min<int64_t>(4096, n - i), most));
  check_finite(float(std::log(sum)));
  share_ = model.cache_share(n);
  const float per_exponential = float(share_ / sum);

  const WordIndex& index = memory.index();
  by_slot_.assign(size_t(index.slots()), 0);
  for (int64_t block = begin; block < t; block += Memory::kBlock) {
    const int64_t row = memory.row_of(block) - block, to = std::min(block + Memory::kBlock, t);
    for (int64_t j = std::max(block, first); j < to; ++j)
      by_slot_[size_t(index.slot_of_row(row + j))] += exponentials[j - first] * per_exponential;
  }
  for (size_t slot = 0; slot < by_slot_.size(); ++slot) {
    if (by_slot_[slot] == 0) continue;
    words_.push_back(index.word(int64_t(slot)));
    shares_.push_back(by_slot_[slot]);
  }
}

void mix_recalled(const Model& model, const Memory& memory, int64_t first, const Batch& hidden, const int32_t* words,
                  Scratch& scratch, States& query, float* room, float* log_probabilities) {
  if (!memory.used() || !hidden.tokens) return;
  const Kernels& k = model.kernels;
  struct Recalled {
    float most = -std::numeric_limits<float>::infinity();
    double sum = 0, matching = 0;
  };
  std::vector<Recalled> recalled(size_t(hidden.tokens));
  const int64_t last = first + hidden.tokens - 1, oldest = memory.first_for(first);
  const Product product(k, memory.states(), query_of(model, hidden, query), false, scratch);
  for (int64_t block = oldest / Memory::kBlock * Memory::kBlock; block < last; block += Memory::kBlock) {
    const int64_t from = std::max(block, oldest) / kLanes * kLanes, to = std::min(block + Memory::kBlock, last);
    const int64_t row = memory.row_of(block) + from - block;
    product.rows(row / kLanes, (padded(to) - from) / kLanes, nullptr, room, Memory::kBlock);
    for (int64_t t = 0; t < hidden.tokens; ++t) {
      const int64_t begin = std::max(from, memory.first_for(first + t)), n = std::min(to, first + t) - begin;
      if (n <= 0) continue;
      float* x = room + t * Memory::kBlock + begin - from;
      Recalled& r = recalled[size_t(t)];
      const float most = k.largest(x, n);
      if (most > r.most) {
        const double shrink = std::exp(double(r.most) - double(most));
        r.sum *= shrink;
        r.matching *= shrink;
        r.most = most;
      }
      r.sum += double(k.exp_store(x, n, r.most));
      r.matching += double(k.matching_sum(x, memory.words() + row + begin - from, n, words[t]));
    }
  }
  for (int64_t t = 0; t < hidden.tokens; ++t) {
    if (first + t == 0) continue;  // nothing to remember yet
    const Recalled& r = recalled[size_t(t)];
    check_finite(float(std::log(r.sum)));
    const double all = model.cache_share(first + t - memory.first_for(first + t));
    log_probabilities[t] = float(double(log_probabilities[t]) + std::log1p(-all));
    const float share = float(all * r.matching / r.sum);
    if (share > 0) k.add_votes(log_probabilities + t, &share, 1);
  }
}

}  // namespace micronet
