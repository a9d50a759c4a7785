// A weight tensor as the file holds it: where its parts are, with every check that needs no decoding.
#pragma once

#include <string>

#include "bytes.hpp"
#include "config.hpp"
#include "container.hpp"

namespace micronet {

// The parts that docs/format.md describes.
struct PackedTensor {
  std::string name;
  TensorConfig config;
  int64_t elements;
  Bytes content;  // floats, integers or codes: all elements, or the non-zeros of a sparse tensor
  Bytes mask;     // for a sparse tensor: one bit per element
  Bytes scales;   // for integers: one, or one per row
  bool coded = false;  // whether the content is prefix codes

  int64_t stored() const { return config.sparse() ? config.nonzeros : elements; }
  int64_t scale_count() const { return int64_t(scales.size / sizeof(float)); }
};

// Take the tensor's parts from the file; check their sizes, the mask and the scales; throws Failure.
// The shape in `config` is already checked against the model's, so its product does not overflow.
PackedTensor take_tensor(Container& container, const std::string& name, const TensorConfig& config);

// Check that the tensor is stored in the shorter of its two forms, dense or sparse: the accounting counts that
// one. The non-zeros of a dense tensor are known only after decoding.
void check_form(const PackedTensor& tensor, int64_t nonzeros);

// Return whether a number may be the scale of integers of this many bits: every integer · scale must be exact.
bool is_scale(float scale, int bits);

// Throw Failure: "the tensor NAME has WHY; pack the model again".
[[noreturn]] void damaged(const std::string& name, const char* why);

}  // namespace micronet
