// A weight tensor as the file holds it: where its parts are, checked as far as that takes no decoding.
#pragma once

#include <string>

#include "bytes.hpp"
#include "config.hpp"
#include "container.hpp"

namespace micronet {

// The parts of docs/format.md.
struct PackedTensor {
  std::string name;
  TensorConfig config;
  int64_t elements;
  Bytes content;  // floats or integers: of all elements, or of the non-zeros of a sparse tensor
  Bytes mask;     // of a sparse tensor: one bit per element
  Bytes scales;   // of integers: one, or one per row

  int64_t stored() const { return config.sparse() ? config.nonzeros : elements; }
  int64_t scale_count() const { return int64_t(scales.size / sizeof(float)); }
};

// Takes the tensor's parts from the file and checks their sizes, the mask and the scales; throws Failure.
// The shape in `config` is the model's, so that its product does not overflow.
PackedTensor take_tensor(Container& container, const std::string& name, const TensorConfig& config);

// A tensor is stored in the shorter of its two forms, dense or sparse, because that is what is counted for
// it. A dense tensor's non-zeros are known only after decoding.
void check_form(const PackedTensor& tensor, int64_t nonzeros);

// Whether a number can be the scale of integers with so many bits: then every integer · scale is exact.
bool is_scale(float scale, int bits);

// Throws: "the tensor NAME has WHY; pack the model again".
[[noreturn]] void damaged(const std::string& name, const char* why);

}  // namespace micronet
