// The likeliest words, exactly, without the bins that cannot hold one of them.
//
// A word of a tail bin has at most its bin's probability, and within the bin a share that can be
// bounded too (bin_bound.hpp); what the cache adds is known. So a bin is computed only if that bound
// reaches the k-th best word that was found so far.
#include <algorithm>
#include <cmath>

#include "session.hpp"
#include "status.hpp"

namespace micronet {

namespace {

// Bounds are compared with a margin for rounding.
constexpr float kMargin = 1e-3f;
constexpr float kLogTwo = 0.6931472f;

// `best` is a heap with the worst of at most k candidates on top.
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

}  // namespace

// Offers all words of a bin that is kept.
void Session::scan(int64_t number, int64_t k, std::vector<Candidate>& best) {
  const Bin& bin = model_->bins[size_t(number)];
  const auto room = size_t(k);
  const float amount = constant(number, next_.bin_log_sums[size_t(number)]);
  float* logits = next_.logits.data();
  // Words with votes are offered with them, and are passed over when their bin is searched. The sum of
  // two probabilities is at most twice the larger one: most words need no logarithm.
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
  for (size_t i = 0; i < next_.votes.words().size(); ++i) {
    const int32_t word = next_.votes.words()[i];
    if (word >= words.first && word < words.last) votes = std::max(votes, next_.votes.shares()[i]);
  }
  return std::log(std::exp(likeliest) + double(votes)) + double(kMargin) >= double(worst);
}

std::vector<Candidate> Session::top_k(int64_t k) {
  check_fed();
  if (k < 1 || k > model_->config.vocabulary())
    fail(MN_ERROR_ARGUMENT, "k must be from 1 to %lld, got %lld",
         static_cast<long long>(model_->config.vocabulary()), static_cast<long long>(k));
  need_votes();
  need_bin(0);
  std::vector<Candidate> best;
  scan(0, k, best);
  std::vector<int64_t> tails;  // the likeliest first: it may make the others unnecessary
  for (int64_t i = 1; i < model_->config.bins(); ++i) tails.push_back(i);
  std::sort(tails.begin(), tails.end(), [&](int64_t a, int64_t b) {
    const float x = next_.tail_logits[size_t(a - 1)], y = next_.tail_logits[size_t(b - 1)];
    return x != y ? x > y : a < b;
  });
  for (int64_t bin : tails) {
    if (int64_t(best.size()) == k && !may_hold_better(bin, best.front().log_probability)) continue;
    need_bin(bin);
    scan(bin, k, best);
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
  for (int32_t id = 0; id < model_->vocabulary.size(); ++id) {
    const std::string_view word = model_->vocabulary.word(id);
    if (word.size() < prefix.size() || word.compare(0, prefix.size(), prefix) != 0) continue;
    need_bin(model_->bin_of(id));
    offer(best, size_t(k), {value(id), id});
  }
  std::sort_heap(best.begin(), best.end());
  return best;
}

}  // namespace micronet
