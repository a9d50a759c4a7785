#include "session.hpp"

#include <algorithm>
#include <cmath>

#include "status.hpp"

namespace micronet {

Session::Session(const Model& model) : model_(&model), added_(model.vocabulary), state_(model), workspace_(model, 1) {
  hidden_.resize(1, model.config.width);
  hidden_.quantize(model.kernels, model.hidden, 0);
  int64_t blocks = 0;
  for (const Bin& bin : model.bins) {
    next_.block_start.push_back(blocks);
    blocks += (bin.table.rows + kWordBlock - 1) / kWordBlock;
  }
  next_.block_most.resize(size_t(blocks));
  next_.kept.resize(model.bins.size());
  next_.bin_log_sums.resize(model.bins.size());
  next_.tail_logits.resize(size_t(padded(model.config.bins() - 1)));
}

void Session::check_fed() const {
  if (!state_.tokens) fail(MN_ERROR_STATE, "no token was fed yet: feed one before asking for the next");
}

void Session::check_id(int32_t id) const {
  const int64_t words = model_->config.vocabulary() + added_.size();
  if (id < 0 || id >= words)
    fail(MN_ERROR_ARGUMENT, "there is no word %d: choose ids from 0 to %lld", id, static_cast<long long>(words - 1));
}

void Session::forget() {
  next_.voted = next_.mixed = false;
  std::fill(next_.kept.begin(), next_.kept.end(), char{0});
}

void Session::feed(const int32_t* ids, int64_t count) {
  for (int64_t i = 0; i < count; ++i) check_id(ids[i]);
  const int64_t at_once = tokens_at_once(*model_);
  if (workspace_.tokens < std::min(count, at_once)) workspace_ = Workspace(*model_, at_once);
  std::vector<int32_t> read;  // what the network reads, if that differs
  if (added_.size()) {
    read.resize(size_t(count));
    for (int64_t i = 0; i < count; ++i) read[size_t(i)] = added_.read_as(ids[i]);
  }
  const int32_t* network = added_.size() ? read.data() : ids;
  Barrier barrier(1);
  for (int64_t from = 0; from < count; from += workspace_.tokens) {
    const int64_t n = std::min(workspace_.tokens, count - from), first = state_.tokens;
    state_.memory.reserve(first, n);
    workspace_.prepare(*model_, std::min(model_->config.context, first + n));
    const Chunk chunk{network + from, n, first, state_.window.reserve(n)};
    forward(*model_, state_, chunk, 0, n, workspace_, barrier);
    if (state_.memory.used()) {
      if (first) state_.memory.set_word(first - 1, ids[from]);
      for (int64_t t = 0; t + 1 < n; ++t) state_.memory.set_word(first + t, ids[from + t + 1]);
    }
    std::copy_n(workspace_.hidden.row(n - 1), hidden_.stride, hidden_.row(0));
    std::copy_n(workspace_.hidden.integer_row(n - 1), hidden_.stride, hidden_.integer_row(0));
    state_.window.advance(n);
    state_.tokens += n;
    if (const auto kept = size_t(model_->ngrams.kept())) {
      state_.read.insert(state_.read.end(), chunk.ids + std::max<int64_t>(0, n - int64_t(kept)), chunk.ids + n);
      if (state_.read.size() > kept) state_.read.erase(state_.read.begin(), state_.read.end() - int64_t(kept));
    }
    forget();
  }
}

void Session::recall(std::shared_ptr<const Recollections> recollections) {
  if (recollections && &recollections->model() != model_)
    fail(MN_ERROR_ARGUMENT, "the recollections belong to another model; make them with the session's");
  AddedWords added = added_;  // an error leaves the session as it was
  auto recalled = recollections ? std::make_shared<const Recalled>(std::move(recollections), added) : nullptr;
  added_ = std::move(added);
  recalled_ = std::move(recalled);
  forget();
}

void Session::drop_word(std::string_view word) {
  const int32_t id = added_.find(word);
  if (id < 0 || id == added_.unknown()) return;
  if (state_.memory.used() && state_.tokens > 1)
    for (int64_t last = state_.tokens - 1, j = state_.memory.first_for(last); j < last; ++j)
      if (state_.memory.word(j) == id) state_.memory.set_word(j, added_.unknown());
  added_.drop(id);
  forget();
}

int64_t Session::remembered() const {
  const int64_t last = state_.tokens - 1;
  return state_.memory.used() && last > 0 ? last - state_.memory.first_for(last) : 0;
}

int32_t Session::remembered(int64_t back, float* state) const {
  const int64_t j = state_.tokens - 1 - back;
  std::vector<int16_t> integers(size_t(model_->config.width));
  state_.memory.get(j, state, integers.data());
  if (model_->integer_cache)
    for (size_t c = 0; c < integers.size(); ++c) state[c] = float(integers[c]) * model_->hidden.scale;
  return state_.memory.word(j);
}

// Compute the logits of a bin's words; return log Σ exp, for the first bin including its entries for the others.
float Session::compute_bin(int64_t number, float* logits, float* block_most) {
  const Kernels& k = model_->kernels;
  const Bin& bin = model_->bins[size_t(number)];
  const Batch input = bin_input(*model_, bin, hidden_.batch(1), projected_, workspace_.scratch);
  LogSum sum;
  const Product product(k, bin.table, input, false, workspace_.scratch);
  each_word_block(bin.table, [&](int64_t row, int64_t rows) {
    const float most = sum.add(k, product, row / kLanes, rows, bin.bias.data() + row, logits + row);
    if (block_most) block_most[row / kWordBlock] = most;
  });
  if (number == 0 && model_->tail_weight.rows) {
    Product(k, model_->tail_weight, input, false, workspace_.scratch)
        .all(model_->tail_bias.data(), next_.tail_logits.data(), 0);
    sum.add(k, next_.tail_logits.data(), model_->tail_weight.rows);
  }
  const float log_sum = sum.value();
  check_finite(log_sum);
  return log_sum;
}

// Compute and keep the logits of a bin and of the first bin, which every probability needs.
void Session::need_bin(int64_t bin) {
  if (!next_.kept[0]) {
    next_.logits.at_least(model_->config.vocabulary());
    next_.log_sum = compute_bin(0, next_.logits.data(), next_.block_most.data());
    next_.kept[0] = 1;
  }
  if (next_.kept[size_t(bin)]) return;
  next_.bin_log_sums[size_t(bin)] = compute_bin(bin, next_.logits.data() + model_->bins[size_t(bin)].first,
                                                next_.block_most.data() + next_.block_start[size_t(bin)]);
  next_.kept[size_t(bin)] = 1;
}

void Session::need_votes() {
  if (next_.voted) return;
  next_.votes.count(*model_, state_.memory, state_.tokens - 1, hidden_.batch(1), workspace_.scratch, recalled_.get());
  next_.voted = true;
  if (!model_->ngrams.used()) return;
  const double others = next_.votes.any() ? 1.0 - next_.votes.share() : 1.0;
  const std::vector<int32_t>& read = state_.read;
  next_.context =
      model_->ngrams.find(read.data() + read.size(), int64_t(read.size()), model_->ngrams.share() * others);
}

void Session::need_extras() {
  if (next_.mixed) return;
  next_.extras.at_least(model_->config.vocabulary());
  model_->ngrams.probabilities(next_.context, next_.extras.data());
  for (size_t i = 0; i < next_.votes.words().size(); ++i)
    if (next_.votes.words()[i] < model_->config.vocabulary())  // `extras` has no entries for added words
      next_.extras[next_.votes.words()[i]] += next_.votes.shares()[i];
  next_.mixed = true;
}

float Session::constant(int64_t bin, float bin_log_sum) const {
  double amount = next_.log_sum;
  if (bin) amount += double(bin_log_sum) - double(next_.tail_logits[size_t(bin - 1)]);
  if (next_.votes.any()) amount -= std::log1p(-next_.votes.share());
  if (model_->ngrams.used()) amount -= std::log1p(-model_->ngrams.share());
  return float(amount);
}

float Session::value(int32_t id) {
  const int64_t bin = model_->bin_of(id);
  float x = next_.logits[id] - constant(bin, next_.bin_log_sums[size_t(bin)]);
  float share = next_.votes.share(state_.memory, id);
  if (model_->ngrams.used()) share = model_->ngrams.probability(next_.context, id) + share;
  if (share > 0) model_->kernels.add_votes(&x, &share, 1);
  return x;
}

float Session::log_probability(int32_t id) {
  check_fed();
  check_id(id);
  need_votes();
  if (id >= model_->config.vocabulary()) return added_value(id);
  need_bin(model_->bin_of(id));
  return value(id);
}

float Session::added_value(int32_t id) const { return std::log(next_.votes.share(state_.memory, id)); }

void Session::log_distribution(float* out) {
  check_fed();
  need_votes();
  const Kernels& k = model_->kernels;
  for (int64_t i = 0; i < model_->config.bins(); ++i) {
    const Bin& bin = model_->bins[size_t(i)];
    float* to = out + bin.first;
    const bool kept = next_.kept[size_t(i)];
    float bin_sum = next_.bin_log_sums[size_t(i)];
    if (!kept) {  // write into the caller's array: the logits are not kept
      (i ? bin_sum : next_.log_sum) = compute_bin(i, to, nullptr);
    }
    const float* from = kept ? next_.logits.data() + bin.first : to;
    const float amount = constant(i, bin_sum);
    // Begin with the last words: their logits are still in the processor's caches.
    for (int64_t end = bin.table.rows; end > 0; end -= kWordBlock) {
      const int64_t row = std::max<int64_t>(0, end - kWordBlock);
      k.subtract(from + row, end - row, amount, to + row);
    }
  }
  if (model_->ngrams.used()) {
    need_extras();
    k.add_votes(out, next_.extras.data(), model_->config.vocabulary());
    return;
  }
  const std::vector<int32_t>& words = next_.votes.words();
  float values[512];
  for (size_t from = 0; from < words.size(); from += 512) {
    const size_t n = std::min<size_t>(512, words.size() - from);
    // `out` has no entries for added words.
    auto inside = [&](size_t i) { return words[from + i] < model_->config.vocabulary(); };
    for (size_t i = 0; i < n; ++i) values[i] = inside(i) ? out[words[from + i]] : 0.0f;
    k.add_votes(values, next_.votes.shares().data() + from, int64_t(n));
    for (size_t i = 0; i < n; ++i)
      if (inside(i)) out[words[from + i]] = values[i];
  }
}

}  // namespace micronet
