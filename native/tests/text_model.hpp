// Small models that read text, one for each tokenizer, with words that short texts can hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "micronet.h"
#include "packed.hpp"

namespace packed {

constexpr int kTextModels = 3;

inline const mn_model* text_model(int kind) {
  static mn_model* models[kTextModels] = {};
  static std::vector<uint8_t> files[kTextModels];
  if (!models[kind]) {
    Options o;
    o.layers = 1;
    o.vocabulary = 16;
    o.cutoffs = {6, 10};
    o.embedding_widths = {4, 2, 1};
    o.width = 4;
    o.ffn_width = 5;
    File file = make(o);
    const char* const names[] = {"wikitext", "word", "word-2"};
    const std::string old = "\"wikitext\"";
    file.metadata.replace(file.metadata.find(old), old.size(), quoted(names[kind]));
    const std::string words = "<eos>\n<unk>\na\nab\nAb\n.\n\uffed.\n\uffed\n\uffeda\n(\n\u00e9\n\u4e2d\n\uffed\u6587\n'\n1.5\nabc\n";
    Tensor& vocabulary = file.tensor("vocabulary");
    vocabulary.bytes.assign(words.begin(), words.end());
    vocabulary.shape = {int64_t(words.size())};
    files[kind] = file.bytes();
    mn_error error;
    if (mn_model_open_bytes(files[kind].data(), files[kind].size(), "scalar", &models[kind], &error) != MN_OK) __builtin_trap();
  }
  return models[kind];
}

}  // namespace packed
