// One word, drawn from what remains of the distribution.
#include <algorithm>
#include <cmath>

#include "session.hpp"
#include "status.hpp"

namespace micronet {

namespace {

// The first word, in the order given, at which the sum of weights exceeds u times their total.
template <class Weight>
size_t pick(size_t count, double u, double total, Weight weight) {
  double sum = 0;
  size_t last = 0;  // rounding may leave u just behind the end
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
  const int64_t words = model_->config.vocabulary();
  const double inverse = std::min(1.0 / temperature, 1e300);  // finite: the likeliest word's weight is exp(0)
  const bool all = top == 0 || top >= words;

  double total = 0;
  if (all) {
    distribution_.at_least(words);
    weights_.at_least(words);
    log_distribution(distribution_.data());
    const float most = model_->kernels.largest(distribution_.data(), words);
    total = model_->kernels.exp_weights(distribution_.data(), words, most, inverse, weights_.data());
    if (share == 1) return int32_t(pick(size_t(words), u, total, [&](size_t i) { return weights_[int64_t(i)]; }));
  }

  // The likeliest words until enough remain; with a share of all words, more and more of them.
  auto weight = [&](const Candidate& c, float most) {
    return std::exp((double(c.log_probability) - double(most)) * inverse);
  };
  std::vector<Candidate> best;
  for (int64_t k = all ? std::min<int64_t>(64, words) : top;; k = std::min(8 * k, words)) {
    best = top_k(k);
    const float most = best.front().log_probability;
    if (!all) {
      total = 0;
      for (const Candidate& c : best) total += weight(c, most);
    }
    double sum = 0;
    size_t needed = 0;
    while (needed < best.size() && (needed == 0 || sum < share * total)) sum += weight(best[needed++], most);
    if (sum >= share * total || !all || k == words) {
      best.resize(needed);
      break;
    }
  }
  const float most = best.front().log_probability;
  std::sort(best.begin(), best.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  total = 0;
  for (const Candidate& c : best) total += weight(c, most);
  return best[pick(best.size(), u, total, [&](size_t i) { return weight(best[i], most); })].id;
}

}  // namespace micronet
