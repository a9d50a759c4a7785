// Small packed files with random weights, written from docs/format.md alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace packed {

struct Options {
  bool unknown = false;  // whether the first word is <unk>
  int64_t vocabulary = 24;
  std::vector<int64_t> cutoffs = {8, 14}, embedding_widths = {6, 3, 1};
  int64_t width = 6, layers = 2, heads = 2, key_width = 3, value_width = 2, ffn_width = 7, context = 4, cache = 5;
  int bits = 9, position_bits = 32, activation_bits = 9;  // activation_bits 0: nothing is quantized
  bool sparse = true, row_scales = false, projected = false;
  bool ngrams = false;  // a table: after word 0 come 1 and 3, after 2 comes 0, after 0 1 comes 2
  uint32_t seed = 1;
};

// The parts of a file, which tests may corrupt before they are joined.
struct Tensor {
  std::string name;
  bool is_float;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

struct File {
  std::string metadata;  // the JSON in the metadata
  std::vector<Tensor> tensors;
  std::vector<uint8_t> bytes() const;
  Tensor& tensor(const std::string& name);
};

std::string quoted(const std::string& text);
File make(const Options& options);

}  // namespace packed
