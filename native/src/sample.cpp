// Sampling: one word, drawn from the words that top_k and top_p keep.
#include <algorithm>
#include <cmath>

#include "session.hpp"
#include "sorting.hpp"
#include "status.hpp"

namespace micronet {

namespace {

// Return the first word, in the order given, at which the sum of weights exceeds u times their total.
template <class Weight>
size_t pick(size_t count, double u, double total, Weight weight) {
  double sum = 0;
  size_t last = 0;  // the result if rounding puts u just past the end
  for (size_t i = 0; i < count; ++i) {
    if (weight(i) <= 0) continue;
    sum += weight(i);
    last = i;
    if (sum > u * total) break;
  }
  return last;
}

}  // namespace

int32_t Session::sample(double u, double temperature, int64_t top, double share) {
  check_fed();
  if (!(u >= 0 && u < 1)) fail(MN_ERROR_ARGUMENT, "u must be in [0, 1), got %g", u);
  if (!(temperature > 0 && std::isfinite(temperature)))
    fail(MN_ERROR_ARGUMENT, "temperature must be above 0 and finite, got %g", temperature);
  if (top < 0) fail(MN_ERROR_ARGUMENT, "top_k must be 0 (all words) or more, got %lld", static_cast<long long>(top));
  if (!(share > 0 && share <= 1)) fail(MN_ERROR_ARGUMENT, "top_p must be above 0 and at most 1, got %g", share);
  const int64_t known = model_->config.vocabulary(), words = known + added_.size();
  const double inverse = std::min(1.0 / temperature, 1e300);  // finite: the likeliest word's weight is exp(0)
  const bool all = top == 0 || top >= words;

  double total = 0;
  if (all) {
    distribution_.at_least(words);
    weights_.at_least(words);
    log_distribution(distribution_.data());
    std::fill(distribution_.data() + known, distribution_.data() + words, -1e30f);
    for (const int32_t word : next_.votes.words())
      if (word >= known) distribution_[word] = added_value(word);
    const float most = model_->kernels.largest(distribution_.data(), words);
    total = model_->kernels.exp_weights(distribution_.data(), words, most, inverse, weights_.data());
    if (share == 1) return int32_t(pick(size_t(words), u, total, [&](size_t i) { return weights_[int64_t(i)]; }));
  }

  // Find the likeliest words until top_p is reached, taking more of them in each round.
  auto weight = [&](const Candidate& c, float most) {
    return std::exp((double(c.log_probability) - double(most)) * inverse);
  };
  std::vector<Candidate> best;
  for (int64_t k = all ? std::min<int64_t>(64, known) : top;; k = std::min(8 * k, known)) {
    best = top_k(k);
    const float most = best.front().log_probability;
    if (!all) {
      total = 0;
      for (const Candidate& c : best) total += weight(c, most);
    }
    double sum = 0;
    size_t needed = 0;
    while (needed < best.size() && (needed == 0 || sum < share * total)) sum += weight(best[needed++], most);
    if (sum >= share * total || !all || k == known) {
      best.resize(needed);
      break;
    }
  }
  const float most = best.front().log_probability;
  sort_all(best.begin(), best.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  total = 0;
  for (const Candidate& c : best) total += weight(c, most);
  return best[pick(best.size(), u, total, [&](size_t i) { return weight(best[i], most); })].id;
}

}  // namespace micronet
