#include "ngrams.hpp"

#include <algorithm>
#include <cmath>

#include "status.hpp"

namespace micronet {

namespace {

// Return element i of packed unsigned integers of up to 31 bits, the lowest bit of the lowest byte first.
int32_t number_at(Bytes bytes, int64_t i, int bits) {
  const int64_t bit = i * bits;
  uint64_t word = 0;
  const size_t byte = size_t(bit / 8);
  std::memcpy(&word, bytes.data + byte, std::min<size_t>(8, bytes.size - byte));
  return int32_t(word >> (bit % 8) & ((uint64_t{1} << bits) - 1));
}

int bits_of(int64_t vocabulary) {
  int bits = 0;
  while ((vocabulary - 1) >> bits) ++bits;
  return bits;
}

[[noreturn]] void damaged_order(int64_t number, const char* why) {
  fail(MN_ERROR_FORMAT, "the n-grams of %lld words have %s; pack the model again", static_cast<long long>(number), why);
}

// Add the values one by one in double, in the same order as every reader of the format.
double sum_of(const float* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += double(values[i]);
  return sum;
}

}  // namespace

NGrams::NGrams(Unpacker& unpacker, const Config& config) {
  const int64_t vocabulary = config.vocabulary();
  share_ = double(unpacker.number("ngrams.share"));
  if (!(share_ > 0 && share_ < 1))
    fail(MN_ERROR_FORMAT, "the n-grams have the share %g, not one between 0 and 1; pack the model again", share_);
  const Buffer<float> values = unpacker.floats("ngrams.values", int64_t{1} << config.ngram_bits);
  for (int64_t i = 0; i < values.size(); ++i)
    if (!(values[i] > (i ? values[i - 1] : 0.0f) && values[i] <= 1))
      fail(MN_ERROR_FORMAT, "the n-grams' values do not increase from above 0 to at most 1; pack the model again");
  const Bytes codes = unpacker.bits("ngrams.1.codes", vocabulary, config.ngram_bits);
  unpacker.reserve(4 * vocabulary);
  alone_ = Buffer<float>(vocabulary);
  for (int64_t i = 0; i < vocabulary; ++i) alone_[i] = values[number_at(codes, i, config.ngram_bits)];
  const double sum = sum_of(alone_.data(), vocabulary);
  if (sum > 1) damaged_order(1, "values that sum to more than 1");
  const double rest = (1.0 - sum) / double(vocabulary);
  for (int64_t i = 0; i < vocabulary; ++i) alone_[i] = float(double(alone_[i]) + rest);
  int64_t below = vocabulary, number = 2;
  for (const int64_t count : config.ngram_entries) {
    orders_.push_back(read_order(unpacker, number++, below, count, config, values));
    below = count;
  }
}

NGrams::Order NGrams::read_order(Unpacker& unpacker, int64_t number, int64_t below, int64_t count, const Config& config,
                                 const Buffer<float>& values) const {
  const std::string name = "ngrams." + std::to_string(number) + ".";
  const int width = bits_of(config.vocabulary());
  const Bytes contexts = unpacker.bits(name + "contexts", below, 1), last = unpacker.bits(name + "last", count, 1);
  const Bytes words = unpacker.bits(name + "words", count, width);
  const Bytes codes = unpacker.bits(name + "codes", count, config.ngram_bits);
  int64_t groups = 0, ends = 0;
  for (int64_t i = 0; i < below; ++i) groups += number_at(contexts, i, 1);
  for (int64_t i = 0; i < count; ++i) ends += number_at(last, i, 1);
  if (groups != ends || !number_at(last, count - 1, 1)) damaged_order(number, "not one group for each context");
  unpacker.reserve(4 * below + 8 * count + 16 * groups);
  Order order;
  order.groups = Buffer<int32_t>(below);
  int32_t group = 0;
  for (int64_t i = 0; i < below; ++i) order.groups[i] = number_at(contexts, i, 1) ? group++ : -1;
  order.words = Buffer<int32_t>(count);
  order.values = Buffer<float>(count);
  order.starts = Buffer<int64_t>(groups + 1);
  order.left = Buffer<double>(groups);
  group = 0;
  for (int64_t i = 0; i < count; ++i) {
    order.words[i] = number_at(words, i, width);
    order.values[i] = values[number_at(codes, i, config.ngram_bits)];
    if (order.words[i] >= config.vocabulary()) damaged_order(number, "a word outside the vocabulary");
    const int64_t start = order.starts[group];
    if (i > start && order.words[i] <= order.words[i - 1]) damaged_order(number, "a group whose words do not increase");
    if (!number_at(last, i, 1)) continue;
    const double sum = sum_of(order.values.data() + start, i + 1 - start);
    if (sum > 1) damaged_order(number, "a group whose values sum to more than 1");
    order.left[group] = 1.0 - sum;
    order.starts[++group] = i + 1;
  }
  return order;
}

int64_t NGrams::Order::find(int64_t group, int32_t word) const {
  const int32_t* begin = words.data() + starts[group];
  const int32_t* end = words.data() + starts[group + 1];
  const int32_t* at = std::lower_bound(begin, end, word);
  return at != end && *at == word ? at - words.data() : -1;
}

int64_t NGrams::group_of(const int32_t* context, int64_t length) const {
  int64_t node = context[0];
  for (int64_t i = 1; i < length; ++i) {
    const Order& order = orders_[size_t(i - 1)];
    if (order.groups[node] < 0) return -1;
    node = order.find(order.groups[node], context[i]);
    if (node < 0) return -1;
  }
  return orders_[size_t(length - 1)].groups[node];
}

NGrams::Context NGrams::find(const int32_t* end, int64_t count, double scale) const {
  Context context;
  double left[kLongest];
  for (int64_t length = 1; length <= std::min(count, kept()); ++length) {
    const int64_t group = group_of(end - length, length);
    if (group < 0) continue;
    const Order& order = orders_[size_t(length - 1)];
    const int64_t start = order.starts[group];
    left[context.found] = order.left[group];
    context.groups[context.found++] = {order.words.data() + start, order.values.data() + start,
                                       order.starts[group + 1] - start, 0};
  }
  for (int64_t i = context.found - 1; i >= 0; --i) {
    context.groups[i].weight = float(scale);
    scale *= left[i];
  }
  context.alone = float(scale);
  return context;
}

float NGrams::probability(const Context& context, int32_t word) const {
  float sum = alone_[word] * context.alone;
  for (int64_t i = 0; i < context.found; ++i) {
    const Context::Group& group = context.groups[i];
    const int32_t* at = std::lower_bound(group.words, group.words + group.count, word);
    if (at != group.words + group.count && *at == word) sum += group.values[at - group.words] * group.weight;
  }
  return sum;
}

void NGrams::probabilities(const Context& context, float* out) const {
  const float weight = context.alone;
  for (int64_t i = 0; i < alone_.size(); ++i) out[i] = alone_[i] * weight;
  for (int64_t i = 0; i < context.found; ++i) {
    const Context::Group& group = context.groups[i];
    for (int64_t j = 0; j < group.count; ++j) out[group.words[j]] += group.values[j] * group.weight;
  }
}

void NGrams::mix(const Kernels& kernels, const int32_t* words, int64_t first, int64_t tokens,
                 float* log_probabilities) const {
  const double others = std::log1p(-share_);
  for (int64_t t = 0; t < tokens; ++t) {
    const float own = probability(find(words + t, first + t + 1, share_), words[t]);
    log_probabilities[t] = float(double(log_probabilities[t]) + others);
    if (own > 0) kernels.add_votes(log_probabilities + t, &own, 1);
  }
}

}  // namespace micronet
