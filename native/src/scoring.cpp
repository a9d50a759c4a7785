#include "scoring.hpp"

#include <algorithm>
#include <atomic>
#include <exception>

#include "forward.hpp"
#include "recall.hpp"
#include "softmax.hpp"

namespace micronet {

namespace {

// One thread's temporary memory for predictions.
struct Room {
  States projected, gathered, query;
  Buffer<float> logits;
  Buffer<float> tails;
};

// Add log P(word | bin) of `words` (ids of the bin). `tails`: the first bin also has one entry per other bin;
// entry[t] is the row asked for or, if it is not less than the table's rows, the tail.
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

// Compute log-probabilities of the words that follow consecutive states, beginning at number `first`; hidden:
// these states.
void predict(const Model& model, const Memory& memory, int64_t first, const Batch& hidden, const int32_t* words,
             const int32_t* own, const OpenText* open, Workspace& w, Room& room, float* out) {
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
  if (model.ngrams.used()) model.ngrams.mix(model.kernels, words, first, hidden.tokens, out);
  room.logits.at_least(hidden.tokens * Memory::kBlock);
  if (open)
    for (size_t t = 0; t < tokens; ++t)
      if (own[t] >= open->vocabulary) out[t] = float(double(out[t]) + open->log_spelled[own[t] - open->vocabulary]);
  mix_recalled(model, memory, first, hidden, own, w.scratch, room.query, room.logits.data(), out, open);
}

}  // namespace

void score(const Model& model, const int32_t* ids, int64_t count, int threads, float* out, const OpenText* open) {
  std::vector<int32_t> read;  // what the network reads, if that differs
  if (open) {
    read.assign(ids, ids + count);
    for (int32_t& id : read)
      if (id >= open->vocabulary) id = open->unknown;
  }
  const int32_t* network = open ? read.data() : ids;
  const int64_t total = count - 1;  // the last word is predicted but not read
  if (total < 1) return;
  threads = int(std::clamp<int64_t>(threads, 1, std::min<int64_t>(total, kLargestChunk)));
  State state(model);
  int64_t each = std::min(tokens_at_once(model), (total + threads - 1) / threads);
  Barrier barrier(threads);
  Chunk chunk{};
  auto begin = [&](int got) {
    threads = got;
    each = std::min(each, kLargestChunk / threads);
    barrier.set_threads(threads);
  };
  auto work = [&](int thread) {
    Workspace workspace(model, each);
    Room room;
    for (int64_t first = 0; first < total; first += each * threads) {
      if (thread == 0) {
        const int64_t n = std::min(each * threads, total - first);
        chunk = {network + first, n, first, state.window.reserve(n)};
        state.memory.reserve(first, n);
        for (int64_t t = 0; t < n && state.memory.used(); ++t) state.memory.set_word(first + t, ids[first + t + 1]);
      }
      barrier.wait();
      const Chunk own = chunk;
      const int64_t from = std::min(own.count, thread * each), to = std::min(own.count, from + each);
      workspace.prepare(model, std::min(model.config.context, own.first + own.count));
      forward(model, state, own, from, to, workspace, barrier);
      barrier.wait();  // all hidden states are in the memory
      predict(model, state.memory, own.first + from, workspace.hidden.batch(to - from),
              network + own.first + from + 1, ids + own.first + from + 1, open, workspace, room, out + own.first + from);
      barrier.wait();
      if (thread == 0) state.window.advance(own.count);
    }
  };
  run_on_threads(threads, begin, work, [&] { barrier.give_up(); });
}

void score_batch(const Model& model, const int32_t* const* ids, const size_t* counts, int64_t texts, int threads,
                 float* const* out) {
  threads = int(std::clamp<int64_t>(threads, 1, std::max<int64_t>(texts, 1)));
  std::atomic<int64_t> next{0};
  auto work = [&](int) {
    for (int64_t i = next++; i < texts; i = next++) score(model, ids[i], int64_t(counts[i]), 1, out[i]);
  };
  run_on_threads(threads, [](int) {}, work, [] {});
}

}  // namespace micronet
