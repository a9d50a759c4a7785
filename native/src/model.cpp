#include "model.hpp"

#include <algorithm>

#include "checksum.hpp"
#include "coded_words.hpp"
#include "container.hpp"
#include "linear.hpp"
#include "status.hpp"

namespace micronet {

namespace {

Positions read_positions(Unpacker& unpacker, const Config& config, const std::string& name,
                     const Quantizer& queries) {
  const auto described = config.tensors.find(name);
  Positions positions;
  positions.stride = padded(config.context) + kLanes;
  Matrix matrix;  // integers of one scale stay integers
  if (described != config.tensors.end() && described->second.bits < 32 && queries.on &&
      sums_fit(described->second.bits, queries.bits, config.key_width))
    matrix = unpacker.matrix(name, config.key_width, config.context);
  if (matrix.rows && matrix.scale_stride == 0) {
    positions.integers = true;
    positions.scale = matrix.scales[0];
    const int64_t pairs = (config.key_width + 1) / 2;
    positions.pairs = Buffer<int16_t>(pairs * positions.stride * 2);
    for (int64_t d = 0; d < config.key_width; ++d)
      for (int64_t c = 0; c < config.context; ++c)
        positions.pairs[(d / 2 * positions.stride + c) * 2 + d % 2] = matrix.integer(d, c);
    return positions;
  }
  if (matrix.rows) {
    positions.values = Buffer<float>(config.key_width * positions.stride);
    for (int64_t d = 0; d < config.key_width; ++d)
      for (int64_t c = 0; c < config.context; ++c)
        positions.values[d * positions.stride + c] = float(matrix.integer(d, c)) * *matrix.scales_at(d);
    return positions;
  }
  // Read the tensor before allocating: only then is it known that the file has one of this size.
  const Buffer<float> values = unpacker.dense(name, config.key_width, config.context);
  positions.values = Buffer<float>(config.key_width * positions.stride);
  for (int64_t d = 0; d < config.key_width; ++d)
    std::memcpy(positions.values.data() + d * positions.stride, values.data() + d * config.context,
                size_t(config.context) * 4);
  return positions;
}

Layer read_layer(Unpacker& unpacker, const Config& config, int64_t number) {
  const std::string block = "blocks." + std::to_string(number) + ".";
  auto quantizer = [&](const char* place) { return unpacker.quantizer(place, number, config.layers); };
  Layer layer;
  layer.attention_norm = quantizer("attention_norm");
  layer.qkv_values = quantizer("qkv");
  layer.attention_softmax = quantizer("attention_softmax");
  layer.attention_values = quantizer("attention_values");
  layer.ffn_norm = quantizer("ffn_norm");
  layer.relu = quantizer("relu");
  layer.ffn_output = quantizer("ffn_output");
  layer.attention_gain = unpacker.norm(block + "attention_norm.weight");
  layer.attention_bias = unpacker.norm(block + "attention_norm.bias");
  layer.ffn_gain = unpacker.norm(block + "ffn_norm.weight");
  layer.ffn_bias = unpacker.norm(block + "ffn_norm.bias");
  const int64_t queries = config.heads * (2 * config.key_width + config.value_width);
  layer.qkv = unpacker.matrix(block + "attention.qkv.weight", queries, config.width);
  layer.qkv_bias = unpacker.vector(block + "attention.qkv.bias", queries);
  layer.positions = read_positions(unpacker, config, block + "attention.positions", layer.qkv_values);
  layer.output = unpacker.matrix(block + "attention.output.weight", config.width,
                                 config.heads * config.value_width);
  layer.inner = unpacker.matrix(block + "inner.weight", config.ffn_width, config.width);
  layer.inner_bias = unpacker.vector(block + "inner.bias", config.ffn_width);
  layer.outer = unpacker.matrix(block + "outer.weight", config.width, config.ffn_width);
  layer.outer_bias = unpacker.vector(block + "outer.bias", config.width);
  const int bits = layer.qkv_values.bits;
  layer.integer_keys = layer.qkv_values.on && sums_fit(bits, bits, config.key_width);
  layer.integer_values = layer.qkv_values.on && layer.attention_softmax.on &&
                         sums_fit(bits, layer.attention_softmax.bits, config.context + 1);
  return layer;
}

Bin read_bin(Unpacker& unpacker, const Config& config, int64_t number, int64_t projection,
             int64_t projections) {
  const std::string name = std::to_string(number);
  const auto i = size_t(number);
  Bin bin;
  bin.first = config.bounds[i];
  bin.last = config.bounds[i + 1];
  const int64_t words = bin.last - bin.first, width = config.embedding_widths[i];
  bin.table = unpacker.matrix("embedding.tables." + name, words, width);
  bin.bias = unpacker.vector("softmax.biases." + name, words);
  bin.projected = width != config.width;
  if (bin.projected) {
    bin.embedding_projection =
        unpacker.matrix("embedding.projections." + name + ".weight", config.width, width);
    bin.softmax_projection =
        unpacker.matrix("softmax.projections." + name + ".weight", width, config.width);
    bin.projection = unpacker.quantizer("projected", projection, projections);
  }
  return bin;
}

}  // namespace

Model::Model(Bytes file, const Kernels& kernels_) : kernels(kernels_), file_size(int64_t(file.size)) {
  Container container(file);
  metadata = container.metadata();
  config = read_config(metadata);
  Unpacker unpacker(container, config, kernels, arena);

  if (config.coded && container.has("vocabulary.coded")) {
    words = decode_words(unpacker.bytes("vocabulary.coded"), config.vocabulary());
    vocabulary = Vocabulary({words.data(), size_t(words.size())}, config.vocabulary());
  } else {
    vocabulary = Vocabulary(unpacker.bytes("vocabulary"), config.vocabulary());
  }
  if (container.has("spelling")) spelling = Spelling(unpacker.bytes("spelling"));
  int64_t projections = 0, projection = 0;
  for (int64_t width : config.embedding_widths) projections += width != config.width;
  for (int64_t i = 0; i < config.bins(); ++i) {
    bins.push_back(read_bin(unpacker, config, i, projection, projections));
    projection += bins.back().projected;
  }
  if (config.bins() > 1) {
    tail_weight = unpacker.matrix("softmax.tail_weight", config.bins() - 1, config.embedding_widths[0]);
    tail_bias = unpacker.vector("softmax.tail_bias", config.bins() - 1);
  }
  for (int64_t l = 0; l < config.layers; ++l) layers.push_back(read_layer(unpacker, config, l));
  hidden = unpacker.quantizer("hidden", 0, 1);
  integer_cache = hidden.on && sums_fit(hidden.bits, hidden.bits, config.width);
  exact = config.activation_bits != 0;
  if (config.cache) {
    theta = unpacker.number("cache.theta");
    lam = unpacker.number("cache.lam");
    if (!(theta > 0 && lam > 0 && lam < 1))
      fail(MN_ERROR_FORMAT, "the cache has theta %g and lam %g, not theta > 0 and 0 < lam < 1; pack the model again",
           double(theta), double(lam));
  }
  if (config.ngram_bits) ngrams = NGrams(unpacker, config);
  unpacker.finish();
  fingerprint = container.checked() ? container.checksum() : checksum(file);
}

}  // namespace micronet
