// Everything of a packed model that does not change while it runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bin_bound.hpp"
#include "config.hpp"
#include "file_map.hpp"
#include "kernels.hpp"
#include "matrix.hpp"
#include "ngrams.hpp"
#include "spelling.hpp"
#include "threads.hpp"
#include "typos.hpp"
#include "unpack.hpp"
#include "vocabulary.hpp"

namespace micronet {

// The position table as attention reads it: one column per token, the last one for the token itself.
struct Positions {
  bool integers = false;
  double scale = 0;
  Buffer<int16_t> pairs;  // (pairs of key_width, stride, 2) where integers
  Buffer<float> values;   // (key_width, stride) where not
  int64_t stride = 0;     // context rounded up to a multiple of 16, plus 16: kernels read past the end
};

struct Layer {
  Buffer<float> attention_gain, attention_bias;  // (width)
  Matrix qkv;                                    // (heads · (2 key_width + value_width), width)
  Buffer<float> qkv_bias;
  Positions positions;
  Matrix output;                     // (width, heads · value_width)
  Buffer<float> ffn_gain, ffn_bias;  // (width)
  Matrix inner;                      // (ffn_width, width)
  Buffer<float> inner_bias;
  Matrix outer;  // (width, ffn_width)
  Buffer<float> outer_bias;
  Quantizer attention_norm, qkv_values, attention_softmax, attention_values, ffn_norm, relu, ffn_output;
  // Which sums are computed in 32-bit integers; the others are computed in double or float.
  bool integer_keys = false, integer_values = false;
};

struct Bin {
  int64_t first = 0, last = 0;        // ids from first to last - 1
  Matrix table;                       // (words, width of the bin)
  bool projected = false;             // whether the bin's width differs from the model's
  Matrix embedding_projection;        // (width, width of the bin)
  Matrix softmax_projection;          // (width of the bin, width)
  Buffer<float> bias;                 // (words)
  Quantizer projection;               // of projected states

  // Computed on first use, because it takes a pass over the table.
  const BinBound& bound() const {
    (*make_bound)([this] { *made_bound = BinBound(table, bias); });
    return *made_bound;
  }

 private:
  std::unique_ptr<Once> make_bound = std::make_unique<Once>();
  std::unique_ptr<BinBound> made_bound = std::make_unique<BinBound>();
};

struct Model {
  // `file` must outlive the model; throws Failure.
  Model(Bytes file, const Kernels& kernels);

  const Kernels& kernels;
  Arena arena;  // the weights' memory
  Config config;
  std::string metadata;
  Buffer<uint8_t> words;  // the vocabulary's text, if the file has it as prefix codes; else it stays in the file
  Vocabulary vocabulary;
  std::unique_ptr<SharedBeginnings> beginnings = std::make_unique<SharedBeginnings>();  // of its words (suggestions.cpp)
  Spelling spelling;  // of words outside the vocabulary; empty if the file has none
  std::vector<Bin> bins;
  Matrix tail_weight;       // (bins - 1, width of the first bin)
  Buffer<float> tail_bias;  // (bins - 1)
  std::vector<Layer> layers;
  Quantizer hidden;
  NGrams ngrams;               // unused if the file has no table
  bool integer_cache = false;  // similarities are sums of integers that fit in 32 bits
  float theta = 0, lam = 0;
  // Return the cache's share of the prediction if it holds this many states (at least one).
  double cache_share(int64_t held) const {
    return held < config.ramp ? double(lam) * double(held) / double(config.ramp) : double(lam);
  }
  // Inputs of a quantizer are computed in double or in integers (docs/arithmetic.md, rule 2).
  bool exact = false;
  uint64_t fingerprint = 0;
  int64_t file_size = 0;

  int64_t bin_of(int32_t word) const {
    int64_t bin = 0;
    while (word >= bins[size_t(bin)].last) ++bin;
    return bin;
  }
};

}  // namespace micronet
