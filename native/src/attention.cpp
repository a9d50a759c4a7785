#include "attention.hpp"

#include <algorithm>
#include <cmath>

namespace micronet {

namespace {

// One head of one token, and the n tokens that it attends to, at the window's places first … first + n - 1.
struct Head {
  const Model& model;
  const Layer& layer;
  const Window& window;
  const LayerWindow& past;  // the layer's keys and values
  int64_t token, number, first, n;
  float inverse_root;  // 1/√d_k
  Workspace& w;

  int64_t key_width() const { return model.config.key_width; }
  int64_t pairs() const { return (key_width() + 1) / 2; }
  const float* query() const { return w.qkv.row(token) + number * key_width(); }
  int16_t* integer_query() const { return w.integers.data(); }  // (2 · pairs)
  double* exact_scores() const { return w.exact_scores.data() + number * w.score_stride(); }
  float* probabilities() const { return w.probabilities.data(); }
  // With one spare place before and one after; see mix_integers.
  int16_t* integer_probabilities() const { return w.integers.data() + padded(2 * pairs()) + 1; }
};

// Return the position table's column of the farthest token attended to. The last column is the token itself.
int64_t first_column(const Config& config, int64_t n) { return config.context - n; }

// Compute a float table's scores for all heads at once: they share the table, so each column is read once.
void score_float_positions(const Model& model, const Layer& layer, int64_t n, int64_t token, float inverse_root,
                           Workspace& w) {
  const Config& c = model.config;
  const Positions& positions = layer.positions;
  model.kernels.scores_table(positions.values.data() + first_column(c, n), positions.stride, c.key_width,
                             w.wide_queries(token), c.heads, n, double(inverse_root), w.exact_scores.data(),
                             w.score_stride());
}

// Copy a head's integers, because a head may begin or end in the middle of a pair.
void copy_integer_query(const Head& head) {
  const int16_t* from = head.w.qkv.integer_row(head.token) + head.number * head.key_width();
  for (int64_t d = 0; d < 2 * head.pairs(); ++d)
    head.integer_query()[d] = d < head.key_width() ? from[d] : int16_t{0};
}

void score_integer_positions(const Head& head) {
  const Config& c = head.model.config;
  const Positions& positions = head.layer.positions;
  const double factor = double(head.layer.qkv_values.scale) * positions.scale * double(head.inverse_root);
  head.model.kernels.scores_i16(positions.pairs.data() + first_column(c, head.n) * 2, positions.stride, head.pairs(),
                                head.integer_query(), head.n, factor, false, head.exact_scores());
}

// Add the scores of the keys to those of the positions.
void score_keys(const Head& head) {
  const Kernels& k = head.model.kernels;
  const auto inverse_root = double(head.inverse_root);
  const int64_t stride = head.window.stride();
  if (head.layer.integer_keys) {
    const double scale = head.layer.qkv_values.scale;
    const int16_t* keys = head.past.integer_keys.data() + (head.number * head.pairs() * stride + head.first) * 2;
    k.scores_i16(keys, stride, head.pairs(), head.integer_query(), head.n, scale * scale * inverse_root, true,
                 head.exact_scores());
  } else {
    const float* keys = head.past.float_keys.data() + head.number * head.key_width() * stride + head.first;
    k.scores_f64(keys, stride, head.key_width(), head.query(), head.n, inverse_root, true, head.exact_scores());
  }
}

// Compute scores and probabilities in float, for a model in which nothing is quantized.
void find_float_probabilities(const Head& head) {
  const Kernels& k = head.model.kernels;
  const Config& c = head.model.config;
  const Positions& positions = head.layer.positions;
  const int64_t stride = head.window.stride();
  const float* keys = head.past.float_keys.data() + head.number * c.key_width * stride + head.first;
  float* scores = head.w.scores.data();
  k.scores_f32(keys, stride, c.key_width, head.query(), head.n, head.inverse_root, false, scores);
  k.scores_f32(positions.values.data() + first_column(c, head.n), positions.stride, c.key_width, head.query(), head.n,
               head.inverse_root, true, scores);
  k.softmax_f32(scores, head.n, head.probabilities());
}

// Compute Q(attention_softmax), where that place is quantized.
void quantize_probabilities(const Head& head) {
  const Quantizer& quantizer = head.layer.attention_softmax;
  if (!quantizer.on) return;
  float* p = head.probabilities();
  if (quantizer.scale > 0) {
    head.model.kernels.quantize(p, head.n, quantizer.inverse, quantizer.limit, quantizer.scale,
                                head.integer_probabilities(), p);
  } else {
    std::fill_n(head.integer_probabilities(), head.n, int16_t{0});
    std::fill_n(p, head.n, 0.0f);
  }
}

// Values are stored in pairs of places. If the window begins or ends within a pair, the other place gets weight 0.
void mix_integers(const Head& head, float* out) {
  const int64_t width = head.window.value_width();
  const int64_t odd = head.first % 2, whole = round_up(head.n + odd, 2);
  int16_t* weights = head.integer_probabilities();
  weights[-1] = 0;
  if (whole > head.n + odd) weights[head.n] = 0;
  const double factor = double(head.layer.qkv_values.scale) * double(head.layer.attention_softmax.scale);
  const int16_t* values =
      head.past.integer_values.data() + (head.number * head.window.places() + head.first - odd) * width;
  head.model.kernels.mix_i16(values, whole / 2, width, weights - odd, factor, out);
}

void mix_floats(const Head& head, float* out) {
  const Kernels& k = head.model.kernels;
  const int64_t width = head.window.value_width();
  const float* values = head.past.float_values.data() + (head.number * head.window.places() + head.first) * width;
  if (head.model.exact) k.mix_f64(values, head.n, width, head.probabilities(), out);
  else k.mix_f32(values, head.n, width, head.probabilities(), out);
}

}  // namespace

void attend(const Model& model, int64_t l, const Window& window, int64_t place, int64_t n, int64_t token,
            Workspace& w) {
  const Config& c = model.config;
  const Layer& layer = model.layers[size_t(l)];
  const float inverse_root = float(1.0 / std::sqrt(double(c.key_width)));
  if (model.exact && !layer.positions.integers) score_float_positions(model, layer, n, token, inverse_root, w);
  for (int64_t h = 0; h < c.heads; ++h) {
    const Head head{model, layer, window, window.layer(l), token, h, place - n + 1, n, inverse_root, w};
    if (layer.qkv_values.on) copy_integer_query(head);
    if (model.exact) {
      if (layer.positions.integers) score_integer_positions(head);
      score_keys(head);
      model.kernels.softmax_f64(head.exact_scores(), n, head.probabilities());
    } else {
      find_float_probabilities(head);
    }
    quantize_probabilities(head);
    float* mixed = w.scores.data();  // (padded value_width): kernels write whole vectors
    if (layer.integer_values) mix_integers(head, mixed);
    else mix_floats(head, mixed);
    std::copy_n(mixed, c.value_width, w.mixed.row(token) + h * c.value_width);
  }
}

}  // namespace micronet
