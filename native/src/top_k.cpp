// The k likeliest words, exact, without computing bins that cannot contain one of them.
//
// A word of a tail has at most its bin's probability, and its probability within the bin has a bound too
// (bin_bound.hpp); the cache's votes and what a table of n-grams adds are known. So a bin is computed only if
// its bound reaches the k-th best word found so far.
#include <algorithm>
#include <cmath>

#include "session.hpp"
#include "sorting.hpp"
#include "status.hpp"

namespace micronet {

namespace {

// The margin for rounding when bounds are compared.
constexpr float kMargin = 1e-3f;
constexpr float kLogTwo = 0.6931472f;

// Offer a candidate to `best`, a heap of at most k candidates with the worst on top.
void offer(std::vector<Candidate>& best, size_t k, Candidate candidate) {
  if (best.size() < k) {
    best.push_back(candidate);
    std::push_heap(best.begin(), best.end());
  } else if (candidate < best.front()) {
    std::pop_heap(best.begin(), best.end());
    best.back() = candidate;
    std::push_heap(best.begin(), best.end());
  }
}

#if !defined(__wasm__)
// A filter for words that may have votes, with one bit per class of ids: looking up a word would take most of the time.
class VotedWords {
 public:
  // asked: how many words will be looked up. For few words the filter is not worth its cost: then any may have votes.
  VotedWords(const std::vector<int32_t>& words, int64_t asked) : all_(asked < kFew) {
    if (all_) return;
    bits_.resize(kBits / 64);
    for (int32_t word : words) bits_[size_t(word) % kBits / 64] |= uint64_t(1) << (word % 64);
  }
  bool may_have(int32_t word) const { return all_ || bits_[size_t(word) % kBits / 64] >> (word % 64) & 1; }

 private:
  static constexpr int64_t kFew = 256;
  static constexpr size_t kBits = 1 << 16;
  bool all_;
  std::vector<uint64_t> bits_;
};
#endif

}  // namespace

// Offer all words of a bin whose logits are kept, where a table of n-grams adds to every word.
void Session::scan_mixed(int64_t number, int64_t k, std::vector<Candidate>& best) {
  const Bin& bin = model_->bins[size_t(number)];
  const auto room = size_t(k);
  const float amount = constant(number, next_.bin_log_sums[size_t(number)]);
  const float* logits = next_.logits.data() + bin.first;
  const float* extras = next_.extras.data() + bin.first;
  // The sum of two probabilities is at most twice the larger one: most words need no logarithm.
  const float all = std::numeric_limits<float>::infinity();
  float worst = -all, half = -all, half_share = -all;
  for (int64_t row = 0; row < bin.table.rows; row += kWordBlock) {
    const int64_t end = std::min(bin.table.rows, row + kWordBlock);
    const float most = next_.block_most[size_t(next_.block_start[size_t(number)] + row / kWordBlock)] - amount;
    if (most < half && model_->kernels.largest(extras + row, end - row) < half_share) continue;
    for (int64_t r = row; r < end; ++r) {
      float x = logits[r] - amount;
      if (best.size() == room && best.front().log_probability != worst) {
        worst = best.front().log_probability;
        half = worst - kLogTwo - kMargin;
        half_share = std::exp(half);
      }
      if (x < half && extras[r] < half_share) continue;
      model_->kernels.add_votes(&x, extras + r, 1);
      offer(best, room, {x, int32_t(bin.first + r)});
    }
  }
}

// Offer all words of a bin whose logits are kept.
void Session::scan(int64_t number, int64_t k, std::vector<Candidate>& best) {
  if (model_->ngrams.used()) return scan_mixed(number, k, best);
  const Bin& bin = model_->bins[size_t(number)];
  const auto room = size_t(k);
  const float amount = constant(number, next_.bin_log_sums[size_t(number)]);
  float* logits = next_.logits.data();
  // A word with votes is offered with its votes, and skipped when its bin is searched. The sum of two
  // probabilities is at most twice the larger one, so most words need no logarithm.
  std::vector<std::pair<int32_t, float>> voted;
  const std::vector<int32_t>& words = next_.votes.words();
  float worst = std::numeric_limits<float>::quiet_NaN(), half = 0, half_share = 0;  // of the k best so far
  for (size_t i = 0; i < words.size(); ++i) {
    const int32_t word = words[i];
    const float share = next_.votes.shares()[i];
    if (word < bin.first || word >= bin.last) continue;
    voted.emplace_back(word, logits[word]);
    float x = logits[word] - amount;
    if (best.size() == room) {
      if (best.front().log_probability != worst) {
        worst = best.front().log_probability;
        half = worst - kLogTwo - kMargin;
        half_share = std::exp(half);
      }
      if (x < half && share < half_share) continue;
    }
    model_->kernels.add_votes(&x, &share, 1);
    offer(best, room, {x, word});
  }
  for (const auto& entry : voted) logits[entry.first] = -std::numeric_limits<float>::infinity();
  for (int64_t row = 0; row < bin.table.rows; row += kWordBlock) {
    const float most = next_.block_most[size_t(next_.block_start[size_t(number)] + row / kWordBlock)];
    if (best.size() == room && most - amount < best.front().log_probability) continue;
    const int64_t end = std::min(bin.table.rows, row + kWordBlock);
    for (int64_t r = row; r < end; ++r) {
      const float x = logits[bin.first + r] - amount;
      if (best.size() < room || x >= best.front().log_probability)
        offer(best, room, {x, int32_t(bin.first + r)});
    }
  }
  for (const auto& entry : voted) logits[entry.first] = entry.second;
}

bool Session::may_hold_better(int64_t bin, float worst) {
  double likeliest = -double(constant(bin, 0.0f));  // log-probability of the bin without the cache
  if (likeliest + double(kMargin) >= double(worst))
    likeliest += model_->bins[size_t(bin)].bound()(bin_input(*model_, model_->bins[size_t(bin)], hidden_.batch(1),
                                                             projected_, workspace_.scratch));
  float votes = 0;
  const Bin& words = model_->bins[size_t(bin)];
  if (model_->ngrams.used()) {
    votes = model_->kernels.largest(next_.extras.data() + words.first, words.table.rows);
  } else {
    for (size_t i = 0; i < next_.votes.words().size(); ++i) {
      const int32_t word = next_.votes.words()[i];
      if (word >= words.first && word < words.last) votes = std::max(votes, next_.votes.shares()[i]);
    }
  }
  return std::log(std::exp(likeliest) + double(votes)) + double(kMargin) >= double(worst);
}

std::vector<Candidate> Session::top_k(int64_t k) {
  check_fed();
  if (k < 1 || k > model_->config.vocabulary())
    fail(MN_ERROR_ARGUMENT, "k must be from 1 to %lld, got %lld",
         static_cast<long long>(model_->config.vocabulary()), static_cast<long long>(k));
  need_votes();
  if (model_->ngrams.used()) need_extras();
  need_bin(0);
  std::vector<Candidate> best;
  scan(0, k, best);
  std::vector<int64_t> tails;  // the likeliest first, because it may make the others unnecessary
  for (int64_t i = 1; i < model_->config.bins(); ++i) tails.push_back(i);
  sort_all(tails.begin(), tails.end(), [&](int64_t a, int64_t b) {
    const float x = next_.tail_logits[size_t(a - 1)], y = next_.tail_logits[size_t(b - 1)];
    return x != y ? x > y : a < b;
  });
  for (int64_t bin : tails) {
    if (int64_t(best.size()) == k && !may_hold_better(bin, best.front().log_probability)) continue;
    need_bin(bin);
    scan(bin, k, best);
  }
  // The votes that an added word needs to be among the best; the worst of these only gets better.
  const float enough = int64_t(best.size()) == k ? std::exp(best.front().log_probability - kMargin) : 0.0f;
  const std::vector<int32_t>& words = next_.votes.words();
  for (size_t i = 0; i < words.size(); ++i) {
    const float share = next_.votes.shares()[i];
    if (words[i] < model_->config.vocabulary()) continue;
    if (int64_t(best.size()) == k && share < enough) continue;  // most need no logarithm
    offer(best, size_t(k), {std::log(share), words[i]});
  }
  std::sort_heap(best.begin(), best.end());
  return best;
}

std::vector<Candidate> Session::complete(std::string_view prefix, int64_t k) {
  check_fed();
  if (k < 1 || k > model_->config.vocabulary())
    fail(MN_ERROR_ARGUMENT, "k must be from 1 to %lld, got %lld",
         static_cast<long long>(model_->config.vocabulary()), static_cast<long long>(k));
  need_votes();
  std::vector<Candidate> best;
  const auto room = size_t(k);
  const auto range = model_->vocabulary.beginning_with(prefix);
#if defined(__wasm__)  // there a small module matters more than speed
  for (const int32_t* place = range.first; place != range.second; ++place) {
    need_bin(model_->bin_of(*place));
    offer(best, room, {value(*place), *place});
  }
#else
  const VotedWords voted(next_.votes.words(), range.second - range.first);
  std::vector<float> amounts(model_->bins.size());  // what to subtract from the logits of each bin that is needed
  std::vector<char> computed(model_->bins.size());
  // As in `scan`: the sum of two probabilities is at most twice the larger one, so most words need no logarithm.
  float worst = std::numeric_limits<float>::quiet_NaN(), half = 0, half_share = 0;
  for (const int32_t* place = range.first; place != range.second; ++place) {
    const int32_t id = *place;
    const auto bin = size_t(model_->bin_of(id));
    if (!computed[bin]) {
      need_bin(int64_t(bin));
      amounts[bin] = constant(int64_t(bin), next_.bin_log_sums[bin]);
      computed[bin] = 1;
    }
    float x = next_.logits[id] - amounts[bin];
    float share = voted.may_have(id) ? next_.votes.share(state_.memory, id) : 0.0f;
    if (model_->ngrams.used()) share = model_->ngrams.probability(next_.context, id) + share;
    if (best.size() == room) {
      if (best.front().log_probability != worst) {
        worst = best.front().log_probability;
        half = worst - kLogTwo - kMargin;
        half_share = std::exp(half);
      }
      if (x < half && share < half_share) continue;
    }
    if (share > 0) model_->kernels.add_votes(&x, &share, 1);
    offer(best, room, {x, id});
  }
#endif
  for (size_t i = 0; i < next_.votes.words().size(); ++i) {
    const int32_t id = next_.votes.words()[i];
    if (id < model_->config.vocabulary() || added_.word(id).compare(0, prefix.size(), prefix) != 0) continue;
    offer(best, room, {std::log(next_.votes.shares()[i]), id});
  }
  std::sort_heap(best.begin(), best.end());
  return best;
}

}  // namespace micronet
