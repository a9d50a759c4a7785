#include "scoring.hpp"

#include <algorithm>
#include <atomic>
#include <exception>

#include "forward.hpp"
#include "recall.hpp"
#include "softmax.hpp"

namespace micronet {

namespace {

// One thread's room for predictions.
struct Room {
  States projected, gathered, query;
  Buffer<float> logits;
  Buffer<float> tails;
};

// Adds log P of `words` (ids of the bin) within their bin's table. `tails`: the first bin also has an
// entry for each other bin; entry[t] says which row or, from the table's rows on, which tail is asked for.
void add_bin(const Model& model, const Bin& bin, const Batch& hidden, const int64_t* entries, bool tails,
             Workspace& w, Room& room, float* const* out) {
  const Kernels& k = model.kernels;
  const Batch input = bin_input(model, bin, hidden, room.projected, w.scratch);
  const int64_t words = bin.table.rows, count = tails ? model.tail_weight.rows : 0;
  std::vector<LogSum> sums(size_t(hidden.tokens));
  std::vector<float> asked(size_t(hidden.tokens));
  room.logits.at_least(hidden.tokens * kWordBlock);
  const Product product(k, bin.table, input, false, w.scratch);
  each_word_block(bin.table, [&](int64_t row, int64_t rows) {
    product.rows(row / kLanes, padded(rows) / kLanes, bin.bias.data() + row, room.logits.data(), kWordBlock);
    for (int64_t t = 0; t < hidden.tokens; ++t) {
      const float* x = room.logits.data() + t * kWordBlock;
      sums[size_t(t)].add(k, x, rows);
      if (entries[t] >= row && entries[t] < row + rows) asked[size_t(t)] = x[entries[t] - row];
    }
  });
  if (count) {
    const int64_t stride = padded(count);
    room.tails.at_least(hidden.tokens * stride);
    Product(k, model.tail_weight, input, false, w.scratch).all(model.tail_bias.data(), room.tails.data(), stride);
    for (int64_t t = 0; t < hidden.tokens; ++t) {
      const float* x = room.tails.data() + t * stride;
      sums[size_t(t)].add(k, x, count);
      if (entries[t] >= words) asked[size_t(t)] = x[entries[t] - words];
    }
  }
  for (int64_t t = 0; t < hidden.tokens; ++t) {
    const float log_sum = sums[size_t(t)].value();
    check_finite(log_sum);
    *out[t] += asked[size_t(t)] - log_sum;
  }
}

// Log-probabilities of the words that follow states number first …: hidden has their states.
void predict(const Model& model, const Memory& memory, int64_t first, const Batch& hidden, const int32_t* words,
             Workspace& w, Room& room, float* out) {
  if (!hidden.tokens) return;
  const auto tokens = size_t(hidden.tokens);
  std::vector<int64_t> entries(tokens), bins(tokens);
  std::vector<float*> places(tokens);
  for (size_t t = 0; t < tokens; ++t) {
    bins[t] = model.bin_of(words[t]);
    entries[t] = bins[t] == 0 ? words[t] : model.bins[0].table.rows + bins[t] - 1;
    out[t] = 0;
    places[t] = out + t;
  }
  add_bin(model, model.bins[0], hidden, entries.data(), true, w, room, places.data());
  for (int64_t i = 1; i < model.config.bins(); ++i) {
    const Bin& bin = model.bins[size_t(i)];
    int64_t found = 0;
    for (size_t t = 0; t < tokens; ++t) found += bins[t] == i;
    if (!found) continue;
    room.gathered.resize(found, hidden.columns);
    int64_t at = 0;
    for (size_t t = 0; t < tokens; ++t) {
      if (bins[t] != i) continue;
      std::copy_n(hidden.values + int64_t(t) * hidden.stride, hidden.stride, room.gathered.row(at));
      if (hidden.integers)
        std::copy_n(hidden.integers + int64_t(t) * hidden.stride, hidden.stride, room.gathered.integer_row(at));
      entries[size_t(at)] = words[t] - bin.first;
      places[size_t(at++)] = out + t;
    }
    Batch gathered = hidden;
    gathered.tokens = found;
    gathered.values = room.gathered.values.data();
    if (hidden.integers) gathered.integers = room.gathered.integers.data();
    add_bin(model, bin, gathered, entries.data(), false, w, room, places.data());
  }
  room.logits.at_least(hidden.tokens * Memory::kBlock);
  mix_recalled(model, memory, first, hidden, words, w.scratch, room.query, room.logits.data(), out);
}

}  // namespace

void score(const Model& model, const int32_t* ids, int64_t count, int threads, float* out) {
  const int64_t total = count - 1;  // the last word is only predicted
  if (total < 1) return;
  threads = int(std::clamp<int64_t>(threads, 1, std::min<int64_t>(total, kLargestChunk)));
  State state(model);
  int64_t each = std::min(tokens_at_once(model), (total + threads - 1) / threads);
  std::vector<std::exception_ptr> errors(size_t(threads), nullptr);
  Barrier barrier(threads);
  Chunk chunk{};
  auto begin = [&](int got) {
    threads = got;
    each = std::min(each, kLargestChunk / threads);
    barrier.set_threads(threads);
  };
  auto work = [&](int thread) noexcept {
    try {
      Workspace workspace(model, each);
      Room room;
      for (int64_t first = 0; first < total; first += each * threads) {
        if (thread == 0) {
          const int64_t n = std::min(each * threads, total - first);
          chunk = {ids + first, n, first, state.window.reserve(n)};
          state.memory.reserve(first, n);
          for (int64_t t = 0; t < n && state.memory.used(); ++t) state.memory.set_word(first + t, ids[first + t + 1]);
        }
        barrier.wait();
        const Chunk own = chunk;
        const int64_t from = std::min(own.count, thread * each), to = std::min(own.count, from + each);
        workspace.prepare(model, std::min(model.config.context, own.first + own.count));
        forward(model, state, own, from, to, workspace, barrier);
        barrier.wait();  // all hidden states are in the memory
        predict(model, state.memory, own.first + from, workspace.hidden.batch(to - from), ids + own.first + from + 1,
                workspace, room, out + own.first + from);
        barrier.wait();
        if (thread == 0) state.window.advance(own.count);
      }
    } catch (const Barrier::Broken&) {
    } catch (...) {
      errors[size_t(thread)] = std::current_exception();
      barrier.give_up();
    }
  };
  run_on_threads(threads, begin, work);
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

void score_batch(const Model& model, const int32_t* const* ids, const size_t* counts, int64_t texts, int threads,
                 float* const* out) {
  threads = int(std::clamp<int64_t>(threads, 1, std::max<int64_t>(texts, 1)));
  std::atomic<int64_t> next{0};
  std::vector<std::exception_ptr> errors(size_t(threads), nullptr);
  run_on_threads(threads, [](int) {}, [&](int thread) noexcept {
    try {
      for (int64_t i = next++; i < texts; i = next++) score(model, ids[i], int64_t(counts[i]), 1, out[i]);
    } catch (...) {
      errors[size_t(thread)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace micronet
