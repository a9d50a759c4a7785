#include "config.hpp"

#include <set>

#include "json.hpp"
#include "status.hpp"

namespace micronet {

namespace {

constexpr int64_t kLargestSize = (int64_t{1} << 31) - 1;
constexpr int64_t kLargestCache = int64_t{1} << 24;

// Reads an object whose keys are all there, once each, and no others.
template <class Read>
void read_object(Json& json, std::set<std::string> keys, Read read) {
  for (bool more = json.open('{'); more; more = json.next('}')) {
    const std::string key = json.key();
    if (!keys.erase(key)) json.damaged("a key that is unknown or occurs twice");
    read(key);
  }
  if (!keys.empty()) json.damaged(("no key '" + *keys.begin() + "'").c_str());
}

int64_t read_size(Json& json, int64_t least, int64_t most) {
  const int64_t value = json.integer();
  if (value < least || value > most) json.damaged("a number outside its range");
  return value;
}

std::vector<int64_t> read_sizes(Json& json) {
  std::vector<int64_t> sizes;
  for (bool more = json.open('['); more; more = json.next(']'))
    sizes.push_back(read_size(json, 1, kLargestSize));
  return sizes;
}

void read_model(Json& json, Config& config) {
  int64_t vocabulary = 0;
  std::vector<int64_t> cutoffs;
  const std::unordered_map<std::string, int64_t*> sizes = {
      {"vocabulary", &vocabulary},           {"width", &config.width},
      {"layers", &config.layers},            {"heads", &config.heads},
      {"key_width", &config.key_width},      {"value_width", &config.value_width},
      {"ffn_width", &config.ffn_width},      {"context", &config.context},
  };
  std::set<std::string> keys = {"cutoffs", "embedding_widths"};
  for (const auto& entry : sizes) keys.insert(entry.first);
  read_object(json, std::move(keys), [&](const std::string& key) {
    if (key == "cutoffs") cutoffs = read_sizes(json);
    else if (key == "embedding_widths") config.embedding_widths = read_sizes(json);
    else *sizes.at(key) = read_size(json, key == "vocabulary" ? 2 : 1, kLargestSize);
  });
  config.bounds = {0};
  config.bounds.insert(config.bounds.end(), cutoffs.begin(), cutoffs.end());
  config.bounds.push_back(vocabulary);
  for (size_t i = 1; i < config.bounds.size(); ++i)
    if (config.bounds[i - 1] >= config.bounds[i])
      json.damaged("cutoffs must increase from above 0 to below the vocabulary");
  if (config.embedding_widths.size() != cutoffs.size() + 1)
    json.damaged("embedding_widths must have one entry more than cutoffs");
}

TensorConfig read_tensor(Json& json) {
  TensorConfig tensor;
  read_object(json, {"shape", "bits", "nonzeros"}, [&](const std::string& key) {
    if (key == "shape") {
      tensor.shape = read_sizes(json);
    } else if (key == "bits") {
      const int64_t bits = json.integer();
      if ((bits < 2 || bits > 16) && bits != 32) json.damaged("bits that are neither 2 to 16 nor 32");
      tensor.bits = int(bits);
    } else if (!json.null()) {
      tensor.nonzeros = json.integer();
    }
  });
  return tensor;
}

}  // namespace

Config read_config(const std::string& metadata) {
  Json json({reinterpret_cast<const uint8_t*>(metadata.data()), metadata.size()}, "metadata");
  Config config;
  read_object(
      json, {"format", "model", "cache", "tokenizer", "activation_bits", "tensors", "card"},
      [&](const std::string& key) {
        if (key == "format") {
          const int64_t format = json.integer();
          if (format != 1)
            fail(MN_ERROR_FORMAT, "the file's format must be 1, got %lld; use a newer program",
                 static_cast<long long>(format));
        } else if (key == "model") {
          read_model(json, config);
        } else if (key == "cache") {
          if (!json.null())
            read_object(json, {"size", "ramp"}, [&](const std::string& part) {
              if (part == "size") config.cache = read_size(json, 1, kLargestCache);
              else config.ramp = read_size(json, 0, kLargestCache);
            });
          if (config.ramp > config.cache) json.damaged("a ramp that is longer than the cache");
        } else if (key == "tokenizer") {
          const std::string name = json.string();
          if (name != "wikitext" && name != "word" && name != "word-2")
            json.damaged("a tokenizer that is none of 'wikitext', 'word' and 'word-2'");
        } else if (key == "activation_bits") {
          if (!json.null()) config.activation_bits = int(read_size(json, 2, 16));
        } else if (key == "tensors") {
          for (bool more = json.open('{'); more; more = json.next('}')) {
            std::string name = json.key();
            TensorConfig tensor = read_tensor(json);
            if (!config.tensors.emplace(std::move(name), std::move(tensor)).second)
              json.damaged("a tensor that occurs twice");
          }
        } else {
          if (!json.is_object()) json.damaged("a card that is not an object");
          json.skip();
        }
      });
  json.end();
  return config;
}

}  // namespace micronet
