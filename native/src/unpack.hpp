// From the tensors of a file to matrices and vectors in memory, each checked on the way.
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

// Reads tensors; every one that the metadata name has to be read once.
class Unpacker {
 public:
  // A model may take this many times its file's bytes in memory, and this many bytes more: zeros
  // take one bit in a file, so a small file can claim very large tensors.
  static constexpr int64_t kLargestFactor = 64;
  static constexpr int64_t kAlwaysAllowed = int64_t{64} << 20;

  Unpacker(Container& container, const Config& config, const Kernels& kernels, Arena& arena);

  Matrix matrix(const std::string& name, int64_t rows, int64_t columns);
  // Values up to a multiple of 16.
  Buffer<float> vector(const std::string& name, int64_t size);
  Buffer<float> norm(const std::string& name);  // dense and in 32 bits
  // Row after row; `either_form`: whether zeros may be left out, so that the shorter form is asked for.
  Buffer<float> dense(const std::string& name, int64_t rows, int64_t columns, bool either_form = true);
  float number(const std::string& name);
  // Counts memory that someone makes of a tensor against what the file may ask for; throws.
  void reserve(int64_t bytes);
  // The quantizer of a place; `count` is how many the place has.
  Quantizer quantizer(const std::string& place, int64_t number, int64_t count);
  Bytes bytes(const std::string& name);  // U8 of any length
  void finish() const;                   // nothing may be left

 private:
  // What the metadata say of a tensor, whose shape has to be the model's.
  const TensorConfig& describe(const std::string& name, const std::vector<int64_t>& shape);
  void copy_scales(const PackedTensor& tensor, Matrix& matrix);
  // Into panels of the matrix's bits, which take so many bytes.
  void fill_integers(const PackedTensor& tensor, int64_t bytes, Matrix& matrix);

  Container& container_;
  const Config& config_;
  const Kernels& kernels_;
  Arena& arena_;
  int64_t allowed_;
  size_t described_ = 0;
  std::unordered_map<std::string, Bytes> places_;
};

}  // namespace micronet
