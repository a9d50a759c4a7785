#include "config.hpp"

#include <initializer_list>
#include <utility>

#include "json.hpp"
#include "sizes.hpp"
#include "status.hpp"
#include "tokenizers.hpp"

namespace micronet {

namespace {

constexpr int64_t kLargestSize = (int64_t{1} << 31) - 1;
constexpr int64_t kLargestCache = int64_t{1} << 24;
constexpr int64_t kLongestNGram = 8;

// The keys of an object that is being read.
class Keys {
 public:
  Keys(Json& json, const char* const* names, size_t count) : json_(json), names_(names), count_(count) {}

  // Read a key that was not there before, and return it; throws Failure.
  std::string next() {
    std::string key = json_.key();
    size_t i = 0;
    while (i < count_ && key != names_[i]) ++i;
    if (i == count_ || seen_ >> i & 1) json_.damaged("a key that is unknown or occurs twice");
    seen_ |= uint32_t{1} << i;
    return key;
  }
  // Throw Failure if one of the first `required` keys was not there.
  void finish(size_t required) const {
    for (size_t i = 0; i < required; ++i)
      if (!(seen_ >> i & 1)) json_.damaged((std::string("no key '") + names_[i] + "'").c_str());
  }

 private:
  Json& json_;
  const char* const* names_;
  size_t count_;
  uint32_t seen_ = 0;
};

// Read an object in which every key occurs exactly once and no other key is allowed; the last `optional` keys may be
// absent.
template <class Read>
void read_object(Json& json, std::initializer_list<const char*> names, Read read, size_t optional = 0) {
  Keys keys(json, names.begin(), names.size());
  for (bool more = json.open('{'); more; more = json.next('}')) read(keys.next());
  keys.finish(names.size() - optional);
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
  const std::pair<const char*, int64_t*> sizes[] = {
      {"vocabulary", &vocabulary},           {"width", &config.width},
      {"layers", &config.layers},            {"heads", &config.heads},
      {"key_width", &config.key_width},      {"value_width", &config.value_width},
      {"ffn_width", &config.ffn_width},      {"context", &config.context},
  };
  read_object(json,
              {"cutoffs", "embedding_widths", "vocabulary", "width", "layers", "heads", "key_width", "value_width",
               "ffn_width", "context"},
              [&](const std::string& key) {
                if (key == "cutoffs") cutoffs = read_sizes(json);
                if (key == "embedding_widths") config.embedding_widths = read_sizes(json);
                for (const auto& size : sizes)
                  if (key == size.first) *size.second = read_size(json, key == "vocabulary" ? 2 : 1, kLargestSize);
              });
  config.bounds = {0};
  config.bounds.insert(config.bounds.end(), cutoffs.begin(), cutoffs.end());
  config.bounds.push_back(vocabulary);
  for (size_t i = 1; i < config.bounds.size(); ++i)
    if (config.bounds[i - 1] >= config.bounds[i])
      json.damaged("cutoffs must increase from above 0 to below the vocabulary");
  if (config.embedding_widths.size() != cutoffs.size() + 1)
    json.damaged("embedding_widths must have one entry more than cutoffs");
  // Queries, keys and values of a token are the rows of one matrix.
  const int64_t per_head = 2 * config.key_width + config.value_width;
  if (product_up_to(config.heads, per_head, kLargestSize + 1) > kLargestSize)
    json.damaged("heads times their widths make too many rows");
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

void read_ngrams(Json& json, Config& config) {
  int64_t order = 0;
  read_object(json, {"order", "bits", "entries"}, [&](const std::string& key) {
    if (key == "order") order = read_size(json, 2, kLongestNGram);
    else if (key == "bits") config.ngram_bits = int(read_size(json, 2, 8));
    else config.ngram_entries = read_sizes(json);
  });
  if (int64_t(config.ngram_entries.size()) != order - 1) json.damaged("ngrams.entries that do not fit ngrams.order");
}

}  // namespace

Config read_config(const std::string& metadata) {
  Json json({reinterpret_cast<const uint8_t*>(metadata.data()), metadata.size()}, "metadata");
  Config config;
  int64_t format = 0;
  bool has_ngrams = false, has_coded = false, has_fade = false;
  read_object(
      json, {"format", "model", "cache", "tokenizer", "activation_bits", "tensors", "card", "ngrams", "coded"},
      [&](const std::string& key) {
        if (key == "format") {
          format = json.integer();
          if (format < 1 || format > 4)
            fail(MN_ERROR_FORMAT, "the file's format must be 1, 2, 3 or 4, got %lld; use a newer program",
                 static_cast<long long>(format));
        } else if (key == "model") {
          read_model(json, config);
        } else if (key == "cache") {
          if (!json.null())
            read_object(json, {"size", "ramp", "fade"}, [&](const std::string& part) {
              if (part == "size") config.cache = read_size(json, 1, kLargestCache);
              else if (part == "ramp") config.ramp = read_size(json, 0, kLargestCache);
              else config.fade = read_size(json, 1, kLargestCache), has_fade = true;
            }, 1);
          if (config.ramp > config.cache) json.damaged("a ramp that is longer than the cache");
        } else if (key == "tokenizer") {
          config.tokenizer = json.string();
          if (!find_tokenizer(config.tokenizer))
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
        } else if (key == "ngrams") {
          has_ngrams = true;
          if (!json.null()) read_ngrams(json, config);
        } else if (key == "coded") {
          has_coded = true;
          config.coded = json.boolean();
        } else {
          if (!json.is_object()) json.damaged("a card that is not an object");
          json.skip();
        }
      },
      2);
  if ((format == 4) != has_fade || (format == 4) != has_coded)
    json.damaged("a fading cache or the key coded in a file of format 1 to 3, or none in one of format 4");
  if ((format >= 2) != has_ngrams || (format == 2 && !config.ngram_bits))
    json.damaged("ngrams in a file of format 1, or none in one of format 2 to 4");
  if (format == 3) config.coded = true;
  for (auto& tensor : config.tensors) tensor.second.may_be_coded = config.coded;
  json.end();
  return config;
}

}  // namespace micronet
