#include "forward.hpp"

#include <algorithm>

#include "attention.hpp"

namespace micronet {

namespace {

// input: x = projection · table[word], or the table's row if the bin has no projection.
void embed(const Model& model, const int32_t* ids, int64_t tokens, Workspace& w) {
  for (int64_t t = 0; t < tokens; ++t) {
    const Bin& bin = model.bins[size_t(model.bin_of(ids[t]))];
    const int64_t row = ids[t] - bin.first;
    if (!bin.projected) {
      read_row(bin.table, row, w.x.integer_row(t), w.x.row(t));
      continue;
    }
    read_row(bin.table, row, w.embedded.integers.data(), w.embedded.values.data());
    Batch batch = w.embedded.batch(1);
    batch.columns = bin.table.columns;
    if (bin.table.integers()) {
      batch.integers = w.embedded.integers.data();
      batch.scale = *bin.table.scales_at(row);
      batch.bits = bin.table.bits;
    }
    Product(model.kernels, bin.embedding_projection, batch, model.exact, w.scratch)
        .all(nullptr, w.x.row(t), w.x.stride);
  }
}

// LayerNorm
void normalize(const Model& model, const States& x, int64_t tokens, const Buffer<float>& gain,
               const Buffer<float>& bias, const Quantizer& quantizer, States& out) {
  for (int64_t t = 0; t < tokens; ++t)
    model.kernels.layer_norm(x.values.data() + t * x.stride, x.columns, gain.data(), bias.data(), out.row(t));
  out.quantize(model.kernels, quantizer, tokens);
}

// relu: max(x, 0)
void cut_negatives(States& x, int64_t tokens) {
  for (int64_t t = 0; t < tokens; ++t) {
    float* row = x.row(t);
    for (int64_t i = 0; i < x.columns; ++i) row[i] = row[i] > 0 ? row[i] : 0;
  }
}

// residual: x = x + more
void add_to(States& x, const States& more, int64_t tokens) {
  for (int64_t t = 0; t < tokens; ++t) {
    float* to = x.row(t);
    const float* from = more.values.data() + t * more.stride;
    for (int64_t c = 0; c < x.columns; ++c) to[c] += from[c];
  }
}

}  // namespace

void forward(const Model& model, State& state, const Chunk& chunk, int64_t from, int64_t to,
             Workspace& w, Barrier& barrier) {
  const Config& c = model.config;
  const Kernels& k = model.kernels;
  const int64_t tokens = to - from;
  auto times = [&](const Matrix& matrix, const States& in, const Buffer<float>* bias, States& out) {
    if (tokens)
      Product(k, matrix, in.batch(tokens), model.exact, w.scratch)
          .all(bias ? bias->data() : nullptr, out.values.data(), out.stride);
  };
  embed(model, chunk.ids + from, tokens, w);
  for (int64_t l = 0; l < c.layers; ++l) {
    const Layer& layer = model.layers[size_t(l)];
    normalize(model, w.x, tokens, layer.attention_gain, layer.attention_bias, layer.attention_norm, w.norm);
    times(layer.qkv, w.norm, &layer.qkv_bias, w.qkv);
    w.qkv.quantize(k, layer.qkv_values, tokens);
    for (int64_t t = 0; t < tokens; ++t)
      state.window.put(l, chunk.place + from + t, w.qkv.row(t), w.qkv.integer_row(t));
    barrier.wait();  // now the keys and values of the whole chunk are complete
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t n = std::min(c.context, chunk.first + from + t + 1);
      attend(model, l, state.window, chunk.place + from + t, n, t, w);
    }
    w.mixed.quantize(k, layer.attention_values, tokens);
    times(layer.output, w.mixed, nullptr, w.outer);
    add_to(w.x, w.outer, tokens);
    normalize(model, w.x, tokens, layer.ffn_gain, layer.ffn_bias, layer.ffn_norm, w.norm);
    times(layer.inner, w.norm, &layer.inner_bias, w.inner);
    cut_negatives(w.inner, tokens);
    w.inner.quantize(k, layer.relu, tokens);
    times(layer.outer, w.inner, &layer.outer_bias, w.outer);
    w.outer.quantize(k, layer.ffn_output, tokens);
    add_to(w.x, w.outer, tokens);
  }
  for (int64_t t = 0; t < tokens; ++t) std::copy_n(w.x.row(t), w.x.stride, w.hidden.row(t));
  w.hidden.quantize(k, model.hidden, tokens);
  for (int64_t t = 0; t < tokens; ++t)
    state.memory.put(chunk.first + from + t, w.hidden.row(t), w.hidden.integer_row(t));
}

}  // namespace micronet
