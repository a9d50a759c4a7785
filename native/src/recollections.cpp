#include "recollections.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "status.hpp"

namespace micronet {

namespace {

double ramped(double share, double held) {
  return share * std::min(1.0, held / double(Recollections::kRamp));
}

}  // namespace

float from_half(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (!exponent) return (sign ? -1.0f : 1.0f) * std::ldexp(float(fraction), -24);
  const uint32_t whole = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
  float value;
  std::memcpy(&value, &whole, 4);
  return value;
}

uint16_t to_half(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float size = std::abs(value);
  if (!(size < 65520.0f)) return sign | 0x7BFF;
  if (size < 6.103515625e-05f) return uint16_t(sign | uint16_t(std::nearbyint(std::ldexp(size, 24))));
  uint32_t whole;
  std::memcpy(&whole, &size, 4);
  whole += 0xFFF + (whole >> 13 & 1);  // to nearest, ties to even
  return uint16_t(sign | ((whole >> 13) - (112u << 10)));
}

Recollections::Recollections(const Model& model, const uint16_t* states, const int32_t* following, int64_t count,
                             std::vector<CountedWord> words, double state_share, double word_share)
    : model_(&model), following_(following, following + count), words_(std::move(words)) {
  const int64_t width = model.config.width, known = model.vocabulary.size() + int64_t(words_.size());
  if (!model.config.cache) fail(MN_ERROR_ARGUMENT, "the model has no cache, so it cannot recall earlier texts");
  if (count > model.config.cache)
    fail(MN_ERROR_ARGUMENT, "a model with a cache of %lld states recalls at most as many, got %lld",
         static_cast<long long>(model.config.cache), static_cast<long long>(count));
  if (!(state_share >= 0 && word_share >= 0 && state_share + word_share < 1))
    fail(MN_ERROR_ARGUMENT, "the shares must be at least 0 and together less than 1, got %g and %g", state_share, word_share);
  for (const int32_t word : following_)
    if (word < 0 || word >= known)
      fail(MN_ERROR_ARGUMENT, "there is no word %d: choose ids from 0 to %lld", word, static_cast<long long>(known - 1));
  for (const CountedWord& word : words_) {
    if (model.vocabulary.find(word.text) >= 0) fail(MN_ERROR_ARGUMENT, "the vocabulary has a word that is to be recalled");
    counted_ += double(word.count);
  }
  state_share_ = count ? ramped(state_share, double(count)) : 0;
  word_share_ = counted_ > 0 ? ramped(word_share, counted_) : 0;

  const int64_t rows = padded(count);
  states_.rows = rows;
  states_.columns = width;
  if (!model.integer_cache) {
    states_.floats = Buffer<float>(rows * width);
  } else {
    states_.bits = model.hidden.bits;
    states_.columns = padded(width);
    states_.scales = Buffer<float>(kLanes);
    states_.scales[0] = model.hidden.scale * model.theta;
    const int64_t bytes = matrix_bytes(rows, states_.columns, states_.bits);
    if (states_.bits <= 8) states_.bytes = Buffer<int8_t>(bytes);
    else if (states_.bits == 9) states_.nines = Buffer<uint8_t>(bytes);
    else states_.shorts = Buffer<int16_t>(bytes / 2);
  }
  // If the model quantizes its states, they are integers times a scale. Half precision has rounded them.
  const Quantizer& hidden = model.hidden;
  const float inverse = hidden.on && hidden.scale > 0 ? 1.0f / hidden.scale : 0;
  const auto limit = float(hidden.limit);
  for (int64_t row = 0; row < count; ++row)
    for (int64_t c = 0; c < width; ++c) {
      const float value = from_half(states[row * width + c]);
      if (!std::isfinite(value)) fail(MN_ERROR_ARGUMENT, "a recalled state is not finite");
      const float whole = hidden.on ? std::clamp(std::nearbyint(value * inverse), -limit, limit) : 0;
      if (model.integer_cache) states_.set_integer(row, c, int16_t(whole));
      else states_.floats[states_.float_place(row, c)] = hidden.on ? whole * hidden.scale : value;
    }
}

Recalled::Recalled(std::shared_ptr<const Recollections> recollections, AddedWords& added)
    : recollections_(std::move(recollections)) {
  const std::vector<CountedWord>& words = recollections_->words();
  const int32_t known = recollections_->model().vocabulary.size();
  std::vector<int32_t> ids;
  for (const CountedWord& word : words) ids.push_back(added.add(word.text));
  const int64_t states = recollections_->size();
  index_.reserve(states + int64_t(words.size()));
  for (int64_t row = 0; row < states; ++row) {
    const int32_t word = recollections_->following()[size_t(row)];
    index_.set(row, word < known ? word : ids[size_t(word - known)]);
  }
  for (size_t i = 0; i < ids.size(); ++i) index_.set(states + int64_t(i), ids[i]);
  word_votes_.assign(size_t(index_.slots()), 0);
  const double counted = recollections_->counted();
  const double per_count = counted > 0 ? recollections_->word_share() / counted : 0;
  for (size_t i = 0; i < words.size(); ++i)
    word_votes_[size_t(index_.slot_of_row(states + int64_t(i)))] += float(per_count * double(words[i].count));
}

}  // namespace micronet
