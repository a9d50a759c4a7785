#include "recall.hpp"

#include <algorithm>
#include <cmath>

#include "softmax.hpp"

namespace micronet {

namespace {

// Multiply the query with θ for float states; the scales of integer states include θ.
Batch query_of(const Model& model, const Batch& hidden, States& room) {
  if (model.integer_cache) return hidden;
  room.resize(hidden.tokens, hidden.columns);
  for (int64_t t = 0; t < hidden.tokens; ++t)
    for (int64_t c = 0; c < hidden.columns; ++c)
      room.row(t)[c] = model.theta * hidden.values[t * hidden.stride + c];
  return room.batch(hidden.tokens);
}

// Lower the similarities of `count` consecutive states, the first of them `age` tokens old, so that a vote shrinks to
// 1/e in `fade` tokens.
void fade_with_age(const Model& model, float* similarities, int64_t count, int64_t age) {
  if (!model.config.fade) return;
  const double rate = 1.0 / double(model.config.fade);
  const auto oldest = int32_t(age), n = int32_t(count);
  for (int32_t i = 0; i < n; ++i) similarities[i] -= float(double(oldest - i) * rate);
}

}  // namespace

float Votes::share(const Memory& memory, int32_t word) const {
  float share = 0;
  const int32_t slot = by_slot_.empty() ? -1 : memory.index().slot_of_word(word);
  if (slot >= 0) share = by_slot_[size_t(slot)];
  if (!kRecollects || !recalled_) return share;
  const int32_t recalled = recalled_->index().slot_of_word(word);
  return recalled < 0 ? share : share + by_recalled_slot_[size_t(recalled)];
}

void Votes::count(const Model& model, const Memory& memory, int64_t t, const Batch& hidden, Scratch& scratch,
                  const Recalled* recalled) {
  words_.clear();
  shares_.clear();
  by_slot_.clear();
  share_ = 0;
  recalled_ = recalled;
  if (!memory.used()) return;
  States room;
  const Batch query = query_of(model, hidden, room);
  count_cache(model, memory, t, query, kRecollects && recalled ? 1.0 - recalled->share() : 1.0, scratch);
  if (kRecollects && recalled) count_recalled(model, query, scratch);
}

void Votes::count_cache(const Model& model, const Memory& memory, int64_t t, const Batch& query, double others,
                        Scratch& scratch) {
  const int64_t first = memory.first_for(t), n = t - first;
  if (!n) return;
  const int64_t begin = first / Memory::kBlock * Memory::kBlock;
  similarities_.at_least(padded(t - begin) + Memory::kBlock);
  float* similarities = similarities_.data();  // of state `begin` and those after it
  const Product product(model.kernels, memory.states(), query, false, scratch);
  float most = -std::numeric_limits<float>::infinity();
  for (int64_t block = begin; block < t; block += Memory::kBlock) {
    const int64_t from = std::max(block, first) / kLanes * kLanes, to = std::min(block + Memory::kBlock, t);
    product.rows((memory.row_of(block) + from - block) / kLanes, (padded(to) - from) / kLanes, nullptr,
                 similarities + from - begin, Memory::kBlock);
    const int64_t own = std::max(from, first);
    fade_with_age(model, similarities + own - begin, to - own, t - own);
    most = std::max(most, model.kernels.largest(similarities + own - begin, to - own));
  }
  float* exponentials = similarities + first - begin;
  double sum = 0;
  for (int64_t i = 0; i < n; i += 4096)
    sum += double(model.kernels.exp_store(exponentials + i, std::min<int64_t>(4096, n - i), most));
  check_finite(float(std::log(sum)));
  share_ = model.cache_share(n) * others;
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

std::vector<Voter> Votes::voters(const Memory& memory, int64_t t) const {
  std::vector<Voter> found;
  if (!memory.used()) return found;
  const int64_t first = memory.first_for(t), begin = first / Memory::kBlock * Memory::kBlock;
  double sum = 0;
  for (int64_t j = first; j < t; ++j) {
    const double exponential = similarities_[j - begin];
    found.push_back({j + 1, memory.word(j), exponential});
    sum += exponential;
  }
  for (Voter& voter : found) voter.part /= sum;
  return found;
}

void Votes::count_recalled(const Model& model, const Batch& query, Scratch& scratch) {
  const Recollections& own = recalled_->recollections();
  const WordIndex& index = recalled_->index();
  by_recalled_slot_ = recalled_->word_votes();
  const int64_t n = own.size();
  if (n) {
    recalled_similarities_.at_least(padded(n));
    float* similarities = recalled_similarities_.data();
    const Product product(model.kernels, own.states(), query, false, scratch);
    for (int64_t row = 0; row < n; row += Memory::kBlock)
      product.rows(row / kLanes, padded(std::min(Memory::kBlock, n - row)) / kLanes, nullptr, similarities + row,
                   Memory::kBlock);
    const float most = model.kernels.largest(similarities, n);
    double sum = 0;
    for (int64_t i = 0; i < n; i += 4096)
      sum += double(model.kernels.exp_store(similarities + i, std::min<int64_t>(4096, n - i), most));
    check_finite(float(std::log(sum)));
    const float per_exponential = float(own.state_share() / sum);
    for (int64_t row = 0; row < n; ++row)
      by_recalled_slot_[size_t(index.slot_of_row(row))] += similarities[row] * per_exponential;
  }
  share_ += recalled_->share();
  merged_.assign(by_recalled_slot_.size(), 0);
  for (size_t i = 0; i < words_.size(); ++i) {  // words that both have votes for: the cache often has fewer words
    const int32_t slot = index.slot_of_word(words_[i]);
    if (slot < 0) continue;
    shares_[i] += by_recalled_slot_[size_t(slot)];
    merged_[size_t(slot)] = 1;
  }
  const size_t slots = by_recalled_slot_.size();
  size_t count = words_.size();
  words_.resize(count + slots);
  shares_.resize(count + slots);
  for (size_t slot = 0; slot < slots; ++slot) {  // without a branch: each is written, and kept only if it is new
    words_[count] = index.word(int64_t(slot));
    shares_[count] = by_recalled_slot_[slot];
    count += size_t(by_recalled_slot_[slot] != 0) & size_t(!merged_[slot]);
  }
  words_.resize(count);
  shares_.resize(count);
}

void mix_recalled(const Model& model, const Memory& memory, int64_t first, const Batch& hidden, const int32_t* words,
                  Scratch& scratch, States& query, float* room, float* log_probabilities, const OpenText* open) {
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
      fade_with_age(model, x, n, first + t - begin);
      Recalled& r = recalled[size_t(t)];
      const float most = k.largest(x, n);
      if (most > r.most) {
        const double shrink = std::exp(double(r.most) - double(most));
        r.sum *= shrink;
        r.matching *= shrink;
        r.most = most;
      }
      r.sum += double(k.exp_store(x, n, r.most));
      const int32_t* remembered = memory.words() + row + begin - from;
      r.matching += double(k.matching_sum(x, remembered, n, words[t]));
      if (open && words[t] >= open->vocabulary)  // a vote for <unk> is shared by all words outside the vocabulary
        r.matching += std::exp(open->log_spelled[words[t] - open->vocabulary]) *
                      double(k.matching_sum(x, remembered, n, open->unknown));
    }
  }
  for (int64_t t = 0; t < hidden.tokens; ++t) {
    if (first + t == 0) continue;  // the memory is still empty
    const Recalled& r = recalled[size_t(t)];
    check_finite(float(std::log(r.sum)));
    const double all = model.cache_share(first + t - memory.first_for(first + t));
    log_probabilities[t] = float(double(log_probabilities[t]) + std::log1p(-all));
    const float share = float(all * r.matching / r.sum);
    if (share > 0) k.add_votes(log_probabilities + t, &share, 1);
  }
}

}  // namespace micronet
