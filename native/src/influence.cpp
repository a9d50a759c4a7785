// Which earlier words the cache votes for, and how much that changes a word's probability.
#include <algorithm>
#include <cmath>
#include <limits>

#include "session.hpp"
#include "status.hpp"

namespace micronet {

Influence Session::influence(int32_t id, int64_t k) {
  check_fed();
  check_id(id);
  if (k < 0) fail(MN_ERROR_ARGUMENT, "k must be 0 or more, got %lld", static_cast<long long>(k));
  need_votes();
  Influence found;
  const int64_t last = state_.tokens - 1;
  found.voters = next_.votes.voters(state_.memory, last);
  if (const auto held = int64_t(found.voters.size())) found.share = model_->cache_share(held);
  for (const Voter& voter : found.voters)
    if (voter.word == id) found.cache += voter.part;
  const auto most = found.voters.begin() + std::min(k, int64_t(found.voters.size()));
  std::partial_sort(found.voters.begin(), most, found.voters.end(), [](const Voter& a, const Voter& b) {
    return a.part != b.part ? a.part > b.part : a.place < b.place;
  });
  found.voters.erase(most, found.voters.end());
  if (id >= model_->config.vocabulary()) {  // a word that only the cache predicts
    found.without_cache = -std::numeric_limits<double>::infinity();
    return found;
  }
  const int64_t bin = model_->bin_of(id);
  need_bin(bin);
  const double others = next_.votes.any() ? 1.0 - next_.votes.share() : 1.0;
  // The constant and the table's weights include the share of everything but the votes.
  double own = double(next_.logits[id]) - double(constant(bin, next_.bin_log_sums[size_t(bin)])) - std::log(others);
  if (model_->ngrams.used())
    own = std::log(std::exp(own) + double(model_->ngrams.probability(next_.context, id)) / others);
  found.without_cache = own;
  return found;
}

}  // namespace micronet
