// The description of a model in the metadata of a packed file.
#pragma once

#include <cstdint>
#include <string>
#include <map>
#include <vector>

namespace micronet {

struct TensorConfig {
  std::vector<int64_t> shape;
  int bits = 32;          // 2 to 16, or 32 for floats
  int64_t nonzeros = -1;  // of a sparse tensor; -1 for a dense one
  bool may_be_coded = false;  // its integers may be prefix codes
  bool sparse() const { return nonzeros >= 0; }
};

struct Config {
  std::vector<int64_t> bounds;            // of the bins: 0, cutoffs, vocabulary
  std::vector<int64_t> embedding_widths;  // one per bin
  int64_t width = 0, layers = 0, heads = 0, key_width = 0, value_width = 0, ffn_width = 0, context = 0;
  int64_t cache = 0;        // entries; 0: no cache
  int64_t ramp = 0;         // number of entries from which the cache has its whole share
  int64_t fade = 0;         // number of tokens in which a vote shrinks to 1/e; 0: it does not
  std::string tokenizer;    // its name in corpora
  bool coded = false;       // whether words and integers may be prefix codes
  int ngram_bits = 0;       // of the codes of n-grams' values; 0: there is no table
  std::vector<int64_t> ngram_entries;  // number of entries of each order, from order 2 on
  int activation_bits = 0;  // 0: activations are not quantized
  std::map<std::string, TensorConfig> tensors;

  int64_t vocabulary() const { return bounds.back(); }
  int64_t bins() const { return int64_t(embedding_widths.size()); }
};

Config read_config(const std::string& metadata);  // throws Failure

}  // namespace micronet
