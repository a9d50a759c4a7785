#include "unpack.hpp"

#include <cmath>
#include <vector>

#include "nines_writer.hpp"
#include "packed_tensor.hpp"
#include "panel_writer.hpp"
#include "status.hpp"
#include "tensor_pieces.hpp"

namespace micronet {

Unpacker::Unpacker(Container& container, const Config& config, const Kernels& kernels, Arena& arena)
    : container_(container),
      config_(config),
      kernels_(kernels),
      arena_(arena),
      allowed_(int64_t(container.file().size) * kLargestFactor + kAlwaysAllowed) {}

const TensorConfig& Unpacker::describe(const std::string& name, const std::vector<int64_t>& shape) {
  const auto found = config_.tensors.find(name);
  if (found == config_.tensors.end())
    fail(MN_ERROR_FORMAT, "the metadata lack the tensor %.100s; pack the model again", name.c_str());
  if (found->second.shape != shape) damaged(name, "a shape that is not the model's");
  int64_t n = 1;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(n, size, &n) || n > (int64_t{1} << 46)) damaged(name, "too many elements");
  ++described_;
  return found->second;
}

void Unpacker::reserve(int64_t bytes) {
  allowed_ -= bytes;
  if (allowed_ < 0)
    fail(MN_ERROR_FORMAT,
         "the file of %zu bytes describes a model of more than %lld times its size; it is damaged",
         container_.file().size, static_cast<long long>(kLargestFactor));
}

Matrix Unpacker::matrix(const std::string& name, int64_t rows, int64_t columns) {
  const PackedTensor tensor = take_tensor(container_, name, describe(name, {rows, columns}));
  Matrix matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.bits = tensor.config.bits;
  const int64_t bytes = matrix_bytes(rows, columns, matrix.bits);
  reserve(bytes);
  if (matrix.integers()) {
    copy_scales(tensor, matrix);
    fill_integers(tensor, bytes, matrix);
  } else {
    matrix.floats = arena_.take<float>(padded(rows) * columns);
    PanelWriter<float, 1> writer(matrix.floats.data(), columns);
    each_float_piece(kernels_, tensor, [&](int64_t, const float* v, int64_t n) { writer.put(v, n); });
  }
  return matrix;
}

void Unpacker::copy_scales(const PackedTensor& tensor, Matrix& matrix) {
  const int64_t scales = tensor.scale_count();
  matrix.scale_stride = scales == 1 ? 0 : 1;
  reserve(4 * padded(scales));
  matrix.scales = arena_.take<float>(padded(scales));
  std::memcpy(matrix.scales.data(), tensor.scales.data, tensor.scales.size);
}

void Unpacker::fill_integers(const PackedTensor& tensor, int64_t bytes, Matrix& matrix) {
  const auto fill = [&](auto writer) {
    each_integer_piece(kernels_, tensor, [&](int64_t, const int16_t* v, int64_t n) { writer.put(v, n); });
  };
  if (matrix.bits <= 8) {
    matrix.bytes = arena_.take<int8_t>(bytes);
    fill(PanelWriter<int8_t, 2>(matrix.bytes.data(), matrix.columns));
  } else if (matrix.bits == 9) {
    matrix.nines = arena_.take<uint8_t>(bytes);
    fill(NinesWriter(matrix.nines.data(), matrix.columns));
  } else {
    matrix.shorts = arena_.take<int16_t>(bytes / 2);
    fill(PanelWriter<int16_t, 2>(matrix.shorts.data(), matrix.columns));
  }
}

Buffer<float> Unpacker::dense(const std::string& name, int64_t rows, int64_t columns, bool either_form) {
  std::vector<int64_t> shape = {rows};
  if (columns) shape.push_back(columns);
  const PackedTensor tensor = take_tensor(container_, name, describe(name, shape));
  reserve(4 * padded(tensor.elements));
  Buffer<float> values = arena_.take<float>(padded(tensor.elements));
  if (tensor.config.bits == 32) {
    const auto copy = [&](int64_t at, const float* v, int64_t n) {
      std::memcpy(values.data() + at, v, size_t(n) * 4);
    };
    each_float_piece(kernels_, tensor, copy, either_form);
    return values;
  }
  const int64_t per_scale = tensor.scale_count() == 1 ? tensor.elements : columns ? columns : 1;  // elements per scale
  each_integer_piece(kernels_, tensor, [&](int64_t at, const int16_t* v, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      values[at + i] = float(v[i]) * read_at<float>(tensor.scales.data + 4 * ((at + i) / per_scale));
  });
  return values;
}

Buffer<float> Unpacker::vector(const std::string& name, int64_t size) { return dense(name, size, 0); }

Buffer<float> Unpacker::norm(const std::string& name) {
  const auto found = config_.tensors.find(name);
  if (found != config_.tensors.end() && (found->second.bits != 32 || found->second.sparse()))
    damaged(name, "not the 32 bits and the dense form of LayerNorm");
  return dense(name, config_.width, 0, false);
}

float Unpacker::number(const std::string& name) {
  const auto value = read_at<float>(container_.take(name, true, {1}).data);
  if (!std::isfinite(value)) damaged(name, "a value that is not finite");
  return value;
}

Buffer<float> Unpacker::floats(const std::string& name, int64_t count) {
  const Bytes bytes = container_.take(name, true, {count});
  Buffer<float> values(count);
  std::memcpy(values.data(), bytes.data, bytes.size);
  return values;
}

Bytes Unpacker::bits(const std::string& name, int64_t count, int bits) {
  const Bytes bytes = container_.take(name, false, {(count * bits + 7) / 8});
  const int64_t loose = count * bits % 8;
  if (loose && bytes.data[bytes.size - 1] >> loose) damaged(name, "bits set after its last element");
  return bytes;
}

Quantizer Unpacker::quantizer(const std::string& place, int64_t number, int64_t count) {
  const std::string name = "activations." + place;
  Quantizer quantizer;
  if (!container_.has(name)) return quantizer;
  if (!config_.activation_bits) damaged(name, "scales, but the metadata have no activation_bits");
  auto found = places_.find(name);
  if (found == places_.end()) {
    const Bytes rows = container_.take(name, true, {count, 2});
    for (int64_t i = 0; i < count; ++i) {
      const auto range = read_at<float>(rows.data + 8 * i), scale = read_at<float>(rows.data + 8 * i + 4);
      if (!(std::isfinite(range) && range >= 0)) damaged(name, "a range that is negative or not finite");
      if (!is_scale(scale, config_.activation_bits))
        damaged(name, "a scale that is not finite, negative, too large, too small or too fine");
    }
    found = places_.emplace(name, rows).first;
  }
  quantizer.on = true;
  quantizer.bits = config_.activation_bits;
  quantizer.scale = read_at<float>(found->second.data + 8 * number + 4);
  quantizer.inverse = quantizer.scale > 0 ? 1.0f / quantizer.scale : 0.0f;
  quantizer.limit = float((1 << (quantizer.bits - 1)) - 1);
  return quantizer;
}

Bytes Unpacker::bytes(const std::string& name) {
  return container_.take(name, false, {container_.length(name, false)});
}

void Unpacker::finish() const {
  container_.finish();
  if (described_ != config_.tensors.size())
    fail(MN_ERROR_FORMAT, "the metadata describe %zu tensors, but the model has %zu; pack it again",
         config_.tensors.size(), described_);
  if (config_.activation_bits && places_.empty())
    fail(MN_ERROR_FORMAT, "the metadata have activation_bits %d, but no activations are quantized; pack the model again",
         config_.activation_bits);
}

}  // namespace micronet
