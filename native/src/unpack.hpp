// Reading a file's tensors into matrices and vectors in memory, with all checks.
//
// packed_tensor.hpp finds a tensor's parts, tensor_pieces.hpp decodes and checks its elements, panel_writer.hpp
// and nines_writer.hpp lay them out.
#pragma once

#include <string>

#include "arena.hpp"
#include "buffer.hpp"
#include "config.hpp"
#include "container.hpp"
#include "matrix.hpp"
#include "packed_tensor.hpp"
#include "quantizer.hpp"

namespace micronet {

// A reader of tensors. Every tensor that the metadata name must be read once.
class Unpacker {
 public:
  // A model may take this many times its file's size in memory, plus this many bytes. There must be a limit,
  // because a zero takes one bit in a file: a small file can claim very large tensors.
  static constexpr int64_t kLargestFactor = 64;
  static constexpr int64_t kAlwaysAllowed = int64_t{64} << 20;

  Unpacker(Container& container, const Config& config, const Kernels& kernels, Arena& arena);

  Matrix matrix(const std::string& name, int64_t rows, int64_t columns);
  // Read values, padded to a multiple of 16.
  Buffer<float> vector(const std::string& name, int64_t size);
  Buffer<float> norm(const std::string& name);  // dense and in 32 bits
  // Read row after row. `either_form`: whether the tensor may be sparse, so that the shorter form is required.
  Buffer<float> dense(const std::string& name, int64_t rows, int64_t columns, bool either_form = true);
  float number(const std::string& name);
  Buffer<float> floats(const std::string& name, int64_t count);  // a tensor that the metadata do not describe
  // Return a U8 tensor with `count` elements of this many bits; bits after the last are 0.
  Bytes bits(const std::string& name, int64_t count, int bits);
  // Count memory against the limit of this file; throws Failure above it.
  void reserve(int64_t bytes);
  // Return the quantizer of a place; `count` is the number of quantizers that the place has.
  Quantizer quantizer(const std::string& place, int64_t number, int64_t count);
  Bytes bytes(const std::string& name);  // U8 of any length
  void finish() const;                   // checks that every tensor was read

 private:
  // Return the metadata of a tensor, after a check that its shape is the model's.
  const TensorConfig& describe(const std::string& name, const std::vector<int64_t>& shape);
  void copy_scales(const PackedTensor& tensor, Matrix& matrix);
  // Read into panels of the matrix's bits, which take this many bytes.
  void fill_integers(const PackedTensor& tensor, int64_t bytes, Matrix& matrix);

  Container& container_;
  const Config& config_;
  const Kernels& kernels_;
  Arena& arena_;
  int64_t allowed_;
  size_t described_ = 0;
  std::map<std::string, Bytes> places_;
};

}  // namespace micronet
