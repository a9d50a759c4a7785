#include "forward.hpp"

#include <algorithm>
#include <cmath>

namespace micronet {

namespace {

// input: x = projection · table[word], or the table's row itself.
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
    Product(model.kernels, bin.embedding_projection, batch, model.exact, w.scratch).all(nullptr, w.x.row(t), w.x.stride);
  }
}

void normalize(const Model& model, const States& x, int64_t tokens, const Buffer<float>& gain,
               const Buffer<float>& bias, const Quantizer& quantizer, States& out) {
  for (int64_t t = 0; t < tokens; ++t)
    model.kernels.layer_norm(x.values.data() + t * x.stride, x.columns, gain.data(), bias.data(), out.row(t));
  out.quantize(model.kernels, quantizer, tokens);
}

// One head's mixed values of one token; heads come in their order. place: of the token; n: tokens that it sees, itself the last.
void attend(const Model& model, const Layer& layer, const Window& window, int64_t l, int64_t head,
            int64_t place, int64_t n, int64_t token, Workspace& w) {
  const Config& c = model.config;
  const Kernels& k = model.kernels;
  const LayerWindow& past = window.layer(l);
  const int64_t first = place - n + 1, column = c.context - n;
  const int64_t pairs = (c.key_width + 1) / 2, stride = window.stride();
  const float* query = w.qkv.row(token) + head * c.key_width;
  // A head's integers may begin at an odd place and end with another head's first: take a copy.
  int16_t* integer_query = w.integers.data();
  if (layer.qkv_values.on) {
    for (int64_t d = 0; d < 2 * pairs; ++d)
      integer_query[d] = d < c.key_width ? w.qkv.integer_row(token)[head * c.key_width + d] : int16_t{0};
  }
  const float inverse_root = float(1.0 / std::sqrt(double(c.key_width)));
  const double scale = layer.qkv_values.scale;
  const Positions& positions = layer.positions;
  float* p = w.probabilities.data() + 1;  // one free place in front: see below
  if (model.exact) {
    double* s = w.exact_scores.data() + head * w.score_stride();
    if (positions.integers)
      k.scores_i16(positions.pairs.data() + column * 2, positions.stride, pairs, integer_query, n,
                   scale * positions.scale * double(inverse_root), false, s);
    else if (head == 0)  // for all heads: they share the table
      k.scores_table(positions.values.data() + column, positions.stride, c.key_width, w.wide_queries(token), c.heads, n,
                     double(inverse_root), s, w.score_stride());
    if (layer.integer_keys)
      k.scores_i16(past.integer_keys.data() + (head * pairs * stride + first) * 2, stride, pairs, integer_query, n,
                   scale * scale * double(inverse_root), true, s);
    else
      k.scores_f64(past.float_keys.data() + head * c.key_width * stride + first, stride, c.key_width, query, n,
                   double(inverse_root), true, s);
    k.softmax_f64(s, n, p);
  } else {
    float* s = w.scores.data();
    k.scores_f32(past.float_keys.data() + head * c.key_width * stride + first, stride, c.key_width, query, n, inverse_root,
                 false, s);
    k.scores_f32(positions.values.data() + column, positions.stride, c.key_width, query, n, inverse_root, true, s);
    k.softmax_f32(s, n, p);
  }
  const Quantizer& softmax = layer.attention_softmax;
  int16_t* weights = w.integers.data() + padded(2 * pairs) + 1;
  if (softmax.on) {
    if (softmax.scale > 0) {
      k.quantize(p, n, softmax.inverse, softmax.limit, softmax.scale, weights, p);
    } else {
      std::fill_n(weights, n, int16_t{0});
      std::fill_n(p, n, 0.0f);
    }
  }
  float* out = w.scores.data();  // (padded value_width)
  const int64_t width = window.value_width();
  if (layer.integer_values) {
    // Values stand in pairs of places; where the window begins or ends within a pair, the other one weighs 0.
    const int64_t odd = first % 2, whole = round_up(n + odd, 2);
    weights[-1] = 0;
    if (whole > n + odd) weights[n] = 0;
    k.mix_i16(past.integer_values.data() + (head * window.places() + first - odd) * width, whole / 2, width,
              weights - odd, scale * double(softmax.scale), out);
  } else if (model.exact) {
    k.mix_f64(past.float_values.data() + (head * window.places() + first) * width, n, width, p, out);
  } else {
    k.mix_f32(past.float_values.data() + (head * window.places() + first) * width, n, width, p, out);
  }
  std::copy_n(out, c.value_width, w.mixed.row(token) + head * c.value_width);
}

void add_to(States& x, const States& more, int64_t tokens) {
  for (int64_t t = 0; t < tokens; ++t) {
    float* to = x.row(t);
    const float* from = more.values.data() + t * more.stride;
    for (int64_t c = 0; c < x.columns; ++c) to[c] += from[c];
  }
}

}  // namespace

int64_t tokens_at_once(const Model& model) {
  const Config& c = model.config;
  const int64_t widest = std::max({c.width, c.ffn_width, c.heads * (2 * c.key_width + c.value_width)});
  return std::clamp<int64_t>((int64_t{1} << 20) / widest, 1, 64);
}

Workspace::Workspace(const Model& model, int64_t tokens_) : tokens(tokens_) {
  const Config& c = model.config;
  embedded.resize(1, *std::max_element(c.embedding_widths.begin(), c.embedding_widths.end()));
  for (States* states : {&x, &norm, &outer, &hidden}) states->resize(tokens, c.width);
  qkv.resize(tokens, c.heads * (2 * c.key_width + c.value_width));
  mixed.resize(tokens, c.heads * c.value_width);
  inner.resize(tokens, c.ffn_width);
  if (model.exact) queries_ = Buffer<double>(c.heads * c.key_width);
}

void Workspace::prepare(const Model& model, int64_t n) {
  if (n <= prepared) return;
  const Config& c = model.config;
  const int64_t room = padded(std::min(c.context, std::max<int64_t>(2 * n, 64)));
  if (model.exact) exact_scores.at_least(c.heads * (room + kLanes));
  scores.at_least(std::max(room, padded(c.value_width)) + kLanes);
  probabilities.at_least(room + 2 * kLanes);
  integers.at_least(padded(c.key_width + 1) + room + 2 * kLanes);
  prepared = room;
}

const double* Workspace::wide_queries(int64_t token) {
  const float* queries = qkv.row(token);
  for (int64_t i = 0; i < queries_.size(); ++i) queries_[i] = queries[i];
  return queries_.data();
}

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
    barrier.wait();  // keys and values of the whole chunk are there
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t n = std::min(c.context, chunk.first + from + t + 1);
      for (int64_t h = 0; h < c.heads; ++h) attend(model, layer, state.window, l, h, chunk.place + from + t, n, t, w);
    }
    w.mixed.quantize(k, layer.attention_values, tokens);
    times(layer.output, w.mixed, nullptr, w.outer);
    add_to(w.x, w.outer, tokens);
    normalize(model, w.x, tokens, layer.ffn_gain, layer.ffn_bias, layer.ffn_norm, w.norm);
    times(layer.inner, w.norm, &layer.inner_bias, w.inner);
    for (int64_t t = 0; t < tokens; ++t) {
      float* row = w.inner.row(t);
      for (int64_t i = 0; i < c.ffn_width; ++i) row[i] = row[i] > 0 ? row[i] : 0;
    }
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
