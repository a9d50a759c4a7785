#include "window.hpp"

#include <algorithm>

#include "status.hpp"
#include "unpack.hpp"

namespace micronet {

namespace {

// Return the index of element d of a head's key at a place, with places in rows of this stride.
int64_t pair_place(int64_t head, int64_t pairs, int64_t stride, int64_t d, int64_t place) {
  return ((head * pairs + d / 2) * stride + place) * 2 + d % 2;
}

}  // namespace

Window::Window(const Model& model)
    : model_(&model), value_width_(round_up(model.config.value_width, 8)), layers_(model.layers.size()) {}

int64_t Window::kept() const { return std::min(end_, model_->config.context - 1); }

int64_t Window::bytes(int64_t places) const {
  const Config& c = model_->config;
  int64_t all = 4;
  for (int64_t size : {c.layers, c.heads, padded(c.key_width) + value_width_, places + 2 * kLanes})
    all = product_up_to(all, size, int64_t{1} << 62);
  return all;
}

LayerWindow Window::allocate(int64_t layer, int64_t places) const {
  const Config& c = model_->config;
  const Layer& weights = model_->layers[size_t(layer)];
  const int64_t stride = places + 2 * kLanes;
  LayerWindow window;
  if (weights.integer_keys) window.integer_keys = Buffer<int16_t>(c.heads * ((c.key_width + 1) / 2) * stride * 2);
  else window.float_keys = Buffer<float>(c.heads * c.key_width * stride);
  if (weights.integer_values) window.integer_values = Buffer<int16_t>(c.heads * places * value_width_ + 2 * kLanes);
  else window.float_values = Buffer<float>(c.heads * places * value_width_ + kLanes);
  return window;
}

// Move places first … first + count - 1 to the front. `first` is even, because values are stored in pairs.
void Window::copy(const LayerWindow& from, int64_t from_places, int64_t first, int64_t count,
                  LayerWindow& to, int64_t to_places) const {
  const Config& c = model_->config;
  const int64_t from_stride = from_places + 2 * kLanes, to_stride = to_places + 2 * kLanes;
  auto rows = [&](const auto& source, auto& target, int64_t count_rows, int64_t size) {
    for (int64_t r = 0; r < count_rows; ++r)
      std::memmove(target.data() + r * to_stride * size, source.data() + (r * from_stride + first) * size,
                   size_t(count * size) * sizeof(source[0]));
  };
  if (from.integer_keys.size()) rows(from.integer_keys, to.integer_keys, c.heads * ((c.key_width + 1) / 2), 2);
  if (from.float_keys.size()) rows(from.float_keys, to.float_keys, c.heads * c.key_width, 1);
  auto heads = [&](const auto& source, auto& target) {
    for (int64_t h = 0; h < c.heads; ++h)
      std::memmove(target.data() + h * to_places * value_width_,
                   source.data() + (h * from_places + first) * value_width_,
                   size_t(round_up(count, 2) * value_width_) * sizeof(source[0]));
  };
  if (from.integer_values.size()) heads(from.integer_values, to.integer_values);
  if (from.float_values.size()) heads(from.float_values, to.float_values);
}

int64_t Window::reserve(int64_t count) {
  if (end_ + count <= places_) return end_;
  const int64_t first = (end_ - kept()) / 2 * 2, keep = end_ - first;
  // Enough for two windows, so that moving costs little per token, but less while the text is short.
  const int64_t enough = round_up(2 * model_->config.context + count + 2, 2);
  int64_t places = std::min(enough, std::max<int64_t>(2 * places_, 64));
  places = std::max(places_, round_up(std::max(places, keep + count), 2));
  if (places == places_) {
    for (LayerWindow& window : layers_) copy(window, places_, first, keep, window, places_);
  } else {
    const int64_t limit = std::max(kAlwaysAllowed, model_->file_size * Unpacker::kLargestFactor);
    if (bytes(places) > limit)
      fail(MN_ERROR_MEMORY, "the model needs %lld MB for the keys and values of %lld tokens, and the limit is %lld MB; choose a model with a smaller context",
           static_cast<long long>(bytes(places) >> 20), static_cast<long long>(places),
           static_cast<long long>(limit >> 20));
    std::vector<LayerWindow> grown(layers_.size());
    for (size_t l = 0; l < layers_.size(); ++l) {
      grown[l] = allocate(int64_t(l), places);
      if (keep) copy(layers_[l], places_, first, keep, grown[l], places);
    }
    layers_.swap(grown);
    places_ = places;
  }
  end_ = keep;
  return end_;
}

void Window::put(int64_t layer, int64_t place, const float* values, const int16_t* integers) {
  const Config& c = model_->config;
  LayerWindow& window = layers_[size_t(layer)];
  const int64_t keys = c.heads * c.key_width, pairs = (c.key_width + 1) / 2;
  for (int64_t h = 0; h < c.heads; ++h) {
    for (int64_t d = 0; d < c.key_width; ++d) {
      const int64_t from = keys + h * c.key_width + d;
      if (window.integer_keys.size())
        window.integer_keys[pair_place(h, pairs, stride(), d, place)] = integers[from];
      else
        window.float_keys[(h * c.key_width + d) * stride() + place] = values[from];
    }
    for (int64_t d = 0; d < c.value_width; ++d) {
      const int64_t from = 2 * keys + h * c.value_width + d;
      if (window.integer_values.size())
        window.integer_values[((h * places_ + place / 2 * 2) * value_width_) + 2 * d + place % 2] = integers[from];
      else
        window.float_values[(h * places_ + place) * value_width_ + d] = values[from];
    }
  }
}

void Window::get(int64_t layer, int64_t place, float* values, int16_t* integers) const {
  const Config& c = model_->config;
  const LayerWindow& window = layers_[size_t(layer)];
  const int64_t keys = c.heads * c.key_width, pairs = (c.key_width + 1) / 2;
  for (int64_t h = 0; h < c.heads; ++h) {
    for (int64_t d = 0; d < c.key_width; ++d) {
      const int64_t to = keys + h * c.key_width + d;
      if (window.integer_keys.size())
        integers[to] = window.integer_keys[pair_place(h, pairs, stride(), d, place)];
      else
        values[to] = window.float_keys[(h * c.key_width + d) * stride() + place];
    }
    for (int64_t d = 0; d < c.value_width; ++d) {
      const int64_t to = 2 * keys + h * c.value_width + d;
      if (window.integer_values.size())
        integers[to] = window.integer_values[((h * places_ + place / 2 * 2) * value_width_) + 2 * d + place % 2];
      else
        values[to] = window.float_values[(h * places_ + place) * value_width_ + d];
    }
  }
}

}  // namespace micronet
