#include "packed.hpp"

#include <cmath>
#include <stdexcept>

namespace packed {

namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed * 2654435761u + 1) {}
  uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    return state_ ^= state_ << 5;
  }
  double between(double low, double high) { return low + (high - low) * (next() >> 8) / 16777216.0; }

 private:
  uint32_t state_;
};

std::string list(const std::vector<int64_t>& numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) text += (i ? "," : "") + std::to_string(numbers[i]);
  return text + "]";
}

template <class T>
void append(std::vector<uint8_t>& bytes, T value) {
  const auto* from = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

// Return the next float whose last `bits` mantissa bits are 0.
float scale_of(double range, int bits) {
  const auto value = float(range / double((1 << (bits - 1)) - 1));
  uint32_t image;
  std::memcpy(&image, &value, 4);
  const uint32_t low = (1u << bits) - 1;
  image = (image + low) & ~low;
  float scale;
  std::memcpy(&scale, &image, 4);
  return scale;
}

class BitWriter {
 public:
  void put(uint32_t value, int bits) {
    for (int i = 0; i < bits; ++i, ++at_) {
      if (at_ % 8 == 0) bytes.push_back(0);
      if (value >> i & 1) bytes.back() = uint8_t(bytes.back() | 1 << at_ % 8);
    }
  }
  std::vector<uint8_t> bytes;

 private:
  size_t at_ = 0;
};

class Maker {
 public:
  explicit Maker(const Options& options) : o_(options), random_(options.seed) {}

  // `pruned`: two of three elements are 0. A tensor is written in its shorter form, as format.md requires.
  void weight(const std::string& name, std::vector<int64_t> shape, int bits, bool pruned, double range) {
    int64_t n = 1;
    for (int64_t size : shape) n *= size;
    const float scale = bits == 32 ? 1.0f : scale_of(range, bits);
    const int limit = bits == 32 ? 0 : (1 << (bits - 1)) - 1;
    std::vector<float> elements;  // values, or integers
    int64_t nonzeros = 0;
    for (int64_t i = 0; i < n; ++i) {
      double value = random_.between(-range, range);
      if (limit) value = std::fmin(std::fmax(std::round(value / double(scale)), -limit), limit);
      elements.push_back(pruned && i % 3 ? 0.0f : float(value));
      nonzeros += elements.back() != 0;
    }
    const bool norm = name.find("_norm.") != std::string::npos;  // always dense
    const bool sparse = !norm && nonzeros * bits + n < n * bits;
    tensors_ += (tensors_.empty() ? "" : ",") + quoted(name) + ":{\"shape\":" + list(shape) +
                ",\"bits\":" + std::to_string(bits) +
                ",\"nonzeros\":" + (sparse ? std::to_string(nonzeros) : "null") + "}";
    BitWriter mask, integers;
    std::vector<uint8_t> floats;
    for (float element : elements) {
      mask.put(element != 0, 1);
      if (sparse && element == 0) continue;
      if (bits == 32) append(floats, element);
      else integers.put(uint32_t(int(element)), bits);
    }
    if (sparse) file_.tensors.push_back({name + ".mask", false, {(n + 7) / 8}, mask.bytes});
    if (bits == 32) {
      if (sparse) file_.tensors.push_back({name + ".values", true, {nonzeros}, floats});
      else file_.tensors.push_back({name, true, shape, floats});
      return;
    }
    file_.tensors.push_back({name + ".integers", false, {int64_t(integers.bytes.size())}, integers.bytes});
    const int64_t rows = o_.row_scales ? shape[0] : 1;
    std::vector<uint8_t> scales;
    for (int64_t i = 0; i < rows; ++i) append(scales, scale);
    file_.tensors.push_back({name + ".steps", true, {rows}, scales});
  }

  void place(const std::string& name, int64_t count, double range) {
    if (!o_.activation_bits || !count) return;
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i < count; ++i) {
      append(bytes, float(range));
      append(bytes, scale_of(range, o_.activation_bits));
    }
    file_.tensors.push_back({"activations." + name, true, {count, 2}, bytes});
  }

  void numbers(const std::string& name, const std::vector<uint32_t>& elements, int bits) {
    BitWriter writer;
    for (uint32_t element : elements) writer.put(element, bits);
    file_.tensors.push_back({"ngrams." + name, false, {int64_t(writer.bytes.size())}, writer.bytes});
  }

  void ngrams() {
    std::vector<uint8_t> share, values;
    append(share, 0.25f);
    for (float value : {1 / 4096.0f, 1 / 8.0f, 1 / 4.0f, 1 / 2.0f}) append(values, value);
    file_.tensors.push_back({"ngrams.share", true, {1}, share});
    file_.tensors.push_back({"ngrams.values", true, {4}, values});
    int width = 0;
    while ((o_.vocabulary - 1) >> width) ++width;
    std::vector<uint32_t> codes(size_t(o_.vocabulary)), contexts(size_t(o_.vocabulary));
    codes[0] = contexts[0] = contexts[2] = 1;
    numbers("1.codes", codes, 2);
    numbers("2.contexts", contexts, 1);
    numbers("2.last", {0, 1, 1}, 1);
    numbers("2.words", {1, 3, 0}, width);
    numbers("2.codes", {3, 2, 1}, 2);
    numbers("3.contexts", {1, 0, 0}, 1);
    numbers("3.last", {1}, 1);
    numbers("3.words", {2}, width);
    numbers("3.codes", {3}, 2);
  }

  File make() {
    std::vector<int64_t> bounds = {0};
    bounds.insert(bounds.end(), o_.cutoffs.begin(), o_.cutoffs.end());
    bounds.push_back(o_.vocabulary);
    int64_t projections = 0;
    for (size_t i = 0; i < o_.embedding_widths.size(); ++i) {
      const std::string bin = std::to_string(i);
      const int64_t words = bounds[i + 1] - bounds[i], width = o_.embedding_widths[i];
      weight("embedding.tables." + bin, {words, width}, o_.bits, o_.sparse, 0.9);
      weight("softmax.biases." + bin, {words}, 32, false, 1.0);
      if (width == o_.width) continue;
      ++projections;
      weight("embedding.projections." + bin + ".weight", {o_.width, width}, o_.bits, o_.sparse, 0.9);
      weight("softmax.projections." + bin + ".weight", {width, o_.width}, o_.bits, o_.sparse, 0.9);
    }
    const auto tails = int64_t(o_.cutoffs.size());
    if (tails) {
      weight("softmax.tail_weight", {tails, o_.embedding_widths[0]}, o_.bits, false, 0.9);
      weight("softmax.tail_bias", {tails}, 32, false, 0.5);
    }
    const int64_t queries = o_.heads * (2 * o_.key_width + o_.value_width);
    for (int64_t l = 0; l < o_.layers; ++l) {
      const std::string block = "blocks." + std::to_string(l) + ".";
      for (const char* norm : {"attention_norm", "ffn_norm"}) {
        weight(block + norm + ".weight", {o_.width}, 32, false, 1.5);
        weight(block + norm + ".bias", {o_.width}, 32, false, 0.2);
      }
      weight(block + "attention.qkv.weight", {queries, o_.width}, o_.bits, o_.sparse, 1.0);
      weight(block + "attention.qkv.bias", {queries}, 32, false, 0.2);
      weight(block + "attention.output.weight", {o_.width, o_.heads * o_.value_width}, o_.bits, o_.sparse, 1.0);
      weight(block + "attention.positions", {o_.key_width, o_.context}, o_.position_bits, false, 0.5);
      weight(block + "inner.weight", {o_.ffn_width, o_.width}, o_.bits, o_.sparse, 1.0);
      weight(block + "inner.bias", {o_.ffn_width}, 32, false, 0.2);
      weight(block + "outer.weight", {o_.width, o_.ffn_width}, o_.bits, o_.sparse, 1.0);
      weight(block + "outer.bias", {o_.width}, 32, false, 0.2);
    }
    for (const char* name : {"attention_norm", "qkv", "attention_values", "ffn_norm", "relu", "ffn_output"})
      place(name, o_.layers, 4.0);
    place("attention_softmax", o_.layers, 1.0);
    place("hidden", 1, 8.0);
    if (o_.projected) place("projected", projections, 8.0);
    if (o_.cache)
      for (const char* name : {"cache.theta", "cache.lam"}) {
        std::vector<uint8_t> bytes;
        append(bytes, 0.25f);
        file_.tensors.push_back({name, true, {1}, bytes});
      }
    if (o_.ngrams) ngrams();
    std::string words;
    for (int64_t i = 0; i < o_.vocabulary; ++i) {
      if (o_.unknown && i == 0) words += "<unk>\n";
      else words += (i % 3 ? "w" : "é") + std::to_string(i) + "\n";
    }
    file_.tensors.push_back({"vocabulary", false, {int64_t(words.size())}, {words.begin(), words.end()}});
    file_.metadata =
        std::string(o_.ngrams ? "{\"format\":2,\"ngrams\":{\"order\":3,\"bits\":2,\"entries\":[3,1]}," : "{\"format\":1,") +
        "\"model\":{\"vocabulary\":" + std::to_string(o_.vocabulary) + ",\"cutoffs\":" + list(o_.cutoffs) +
        ",\"embedding_widths\":" + list(o_.embedding_widths) + ",\"width\":" + std::to_string(o_.width) +
        ",\"layers\":" + std::to_string(o_.layers) + ",\"heads\":" + std::to_string(o_.heads) +
        ",\"key_width\":" + std::to_string(o_.key_width) + ",\"value_width\":" + std::to_string(o_.value_width) +
        ",\"ffn_width\":" + std::to_string(o_.ffn_width) + ",\"context\":" + std::to_string(o_.context) +
        "},\"cache\":" + (o_.cache ? "{\"size\":" + std::to_string(o_.cache) + ",\"ramp\":" + std::to_string(o_.cache / 2) + "}" : "null") +
        ",\"tokenizer\":\"wikitext\",\"activation_bits\":" +
        (o_.activation_bits ? std::to_string(o_.activation_bits) : "null") + ",\"tensors\":{" + tensors_ +
        "},\"card\":{\"name\":\"tiny\",\"numbers\":[1.5e3,-2,true,null]}}";
    return file_;
  }

 private:
  const Options& o_;
  Random random_;
  std::string tensors_;
  File file_;
};

}  // namespace

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

Tensor& File::tensor(const std::string& name) {
  for (Tensor& tensor : tensors)
    if (tensor.name == name) return tensor;
  throw std::runtime_error("no tensor " + name);
}

std::vector<uint8_t> File::bytes() const {
  std::string header = "{\"__metadata__\":{\"micronet\":" + quoted(metadata) + "}";
  std::vector<uint8_t> data;
  for (const Tensor& tensor : tensors) {
    header += "," + quoted(tensor.name) + ":{\"dtype\":\"" + (tensor.is_float ? "F32" : "U8") +
              "\",\"shape\":" + list(tensor.shape) + ",\"data_offsets\":" +
              list({int64_t(data.size()), int64_t(data.size() + tensor.bytes.size())}) + "}";
    data.insert(data.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  header += "}";
  while (header.size() % 8) header += " ";
  std::vector<uint8_t> file;
  append(file, uint64_t(header.size()));
  file.insert(file.end(), header.begin(), header.end());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

File make(const Options& options) { return Maker(options).make(); }

}  // namespace packed
