#include "unpack.hpp"

#include <cmath>
#include <vector>

#include "bitstream.hpp"
#include "nines_writer.hpp"
#include "panel_writer.hpp"
#include "status.hpp"

namespace micronet {

namespace {

[[noreturn]] void damaged(const std::string& name, const char* why) {
  fail(MN_ERROR_FORMAT, "the tensor %.100s has %s; pack the model again", name.c_str(), why);
}

// 0, or from 2^-126 to 2^100 with zeros in the last b bits of the mantissa: then every integer · scale
// is exact.
bool is_scale(float scale, int bits) {
  if (scale == 0) return !std::signbit(scale);
  if (!(scale >= 0x1p-126f && scale <= 0x1p100f)) return false;
  uint32_t image;
  std::memcpy(&image, &scale, 4);
  return (image & ((uint32_t{1} << bits) - 1)) == 0;
}

int64_t elements(const TensorConfig& tensor) {  // the shape was checked against the model's: no overflow
  int64_t n = 1;
  for (int64_t size : tensor.shape) n *= size;
  return n;
}

// Where a tensor's parts are, and what they say.
struct Parts {
  TensorConfig config;
  int64_t n;  // elements
  Bytes content, mask, scales;
};

// A tensor is stored in the shorter of its two forms: what it takes is what is counted for it.
void check_form(const Parts& parts, int64_t nonzeros, const std::string& name) {
  const bool sparse = nonzeros * parts.config.bits + parts.n < parts.n * parts.config.bits;
  if (sparse != parts.config.sparse()) damaged(name, "the longer of its two forms, dense or sparse");
}

Parts take_parts(Container& container, const std::string& name, const TensorConfig& config) {
  Parts parts{config, elements(config), {}, {}, {}};
  const int64_t stored = config.sparse() ? config.nonzeros : parts.n;
  if (config.sparse()) {
    if (config.nonzeros > parts.n) damaged(name, "more non-zeros than elements");
    parts.mask = container.take(name + ".mask", false, {(parts.n + 7) / 8});
    check_mask(parts.mask, parts.n, config.nonzeros, name);
    check_form(parts, config.nonzeros, name);
  }
  if (config.bits == 32) {
    parts.content = config.sparse() ? container.take(name + ".values", true, {stored})
                                    : container.take(name, true, config.shape);
    return parts;
  }
  parts.content = container.take(name + ".integers", false, {(stored * config.bits + 7) / 8});
  const int64_t scales = container.length(name + ".steps", true);
  if (scales != 1 && scales != config.shape[0]) damaged(name, "neither one scale nor one per row");
  parts.scales = container.take(name + ".steps", true, {scales});
  for (int64_t i = 0; i < scales; ++i)
    if (!is_scale(read_at<float>(parts.scales.data + 4 * i), config.bits))
      damaged(name, "a scale that is not finite, negative, too large, too small or too fine");
  return parts;
}

struct FloatRules {
  const std::string& name;
  void check(const float* values, int64_t count, bool sparse) const {
    for (int64_t i = 0; i < count; ++i) {
      if (!std::isfinite(values[i])) damaged(name, "a value that is not finite");
      if (sparse && values[i] == 0) damaged(name, "a 0 among its non-zeros");
    }
  }
};

struct IntegerRules {
  const std::string& name;
  int16_t lowest;  // the one integer of these bits that is not allowed
  void check(const int16_t* values, int64_t count, bool sparse) const {
    int16_t below = 0, zero = 0;  // of the values' size, so that several are compared at once
    for (int64_t i = 0; i < count; ++i) {
      below = int16_t(below | (values[i] == lowest));
      zero = int16_t(zero | (values[i] == 0));
    }
    if (below) damaged(name, "an integer below its range");
    if (sparse && zero) damaged(name, "a 0 among its non-zeros");
  }
};

// The next value for each bit of the mask that is set, 0 for the others.
void spread(const Kernels& kernels, uint64_t mask, const int16_t* values, int16_t* piece) {
  kernels.spread_i16(mask, values, piece);
}

void spread(const Kernels&, uint64_t mask, const float* values, float* piece) {
  for (int i = 0; i < 64; ++i) piece[i] = mask >> i & 1 ? *values++ : 0.0f;
}

// Hands the elements to put(first element, values, count) in pieces of 64; gives the non-zeros.
template <class T, class Stream, class Rules, class Put>
int64_t each_piece(const Kernels& kernels, const Parts& parts, Stream stream, Rules rules, Put put) {
  const bool sparse = parts.config.sparse();
  int64_t nonzeros = 0;
  T values[64 + 8] = {}, piece[64];  // spread_i16 may read 8 values more
  for (int64_t at = 0; at < parts.n; at += 64) {
    const int64_t count = parts.n - at < 64 ? parts.n - at : 64;
    const uint64_t mask = sparse ? mask_word(parts.mask, at) : 0;
    const int64_t stored = sparse ? __builtin_popcountll(mask) : count;
    stream.next(values, stored);
    rules.check(values, stored, sparse);
    if (sparse) {
      spread(kernels, mask, values, piece);
      put(at, piece, count);
    } else {
      for (int64_t i = 0; i < count; ++i) nonzeros += values[i] != 0;
      put(at, values, count);
    }
  }
  return sparse ? parts.config.nonzeros : nonzeros;
}

template <class Put>
void each_integer_piece(const Kernels& kernels, const Parts& parts, const std::string& name, Put put) {
  const int bits = parts.config.bits;
  const int64_t stored = parts.config.sparse() ? parts.config.nonzeros : parts.n;
  check_form(parts,
             each_piece<int16_t>(kernels, parts, IntegerStream(parts.content, bits, stored, name),
                                 IntegerRules{name, int16_t(-(1 << (bits - 1)))}, put),
             name);
}

// LayerNorm's tensors are dense whatever they hold: theirs is not `either_form`.
template <class Put>
void each_float_piece(const Kernels& kernels, const Parts& parts, const std::string& name, Put put,
                      bool either_form = true) {
  const int64_t nonzeros = each_piece<float>(kernels, parts, FloatStream(parts.content), FloatRules{name}, put);
  if (either_form) check_form(parts, nonzeros, name);
}

}  // namespace

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
  const Parts parts = take_parts(container_, name, describe(name, {rows, columns}));
  Matrix matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.bits = parts.config.bits;
  const int64_t bytes = matrix_bytes(rows, columns, matrix.bits);
  reserve(bytes);
  if (!matrix.integers()) {
    matrix.floats = arena_.take<float>(padded(rows) * columns);
    PanelWriter<float, 1> writer(matrix.floats.data(), columns);
    each_float_piece(kernels_, parts, name, [&](int64_t, const float* v, int64_t n) { writer.put(v, n); });
    return matrix;
  }
  const int64_t scales = int64_t(parts.scales.size / 4);
  matrix.scale_stride = scales == 1 ? 0 : 1;
  reserve(4 * padded(scales));
  matrix.scales = arena_.take<float>(padded(scales));
  std::memcpy(matrix.scales.data(), parts.scales.data, parts.scales.size);
  if (matrix.bits <= 8) {
    matrix.bytes = arena_.take<int8_t>(bytes);
    PanelWriter<int8_t, 2> writer(matrix.bytes.data(), columns);
    each_integer_piece(kernels_, parts, name, [&](int64_t, const int16_t* v, int64_t n) { writer.put(v, n); });
  } else if (matrix.bits == 9) {
    matrix.nines = arena_.take<uint8_t>(bytes);
    NinesWriter writer(matrix.nines.data(), columns);
    each_integer_piece(kernels_, parts, name, [&](int64_t, const int16_t* v, int64_t n) { writer.put(v, n); });
  } else {
    matrix.shorts = arena_.take<int16_t>(bytes / 2);
    PanelWriter<int16_t, 2> writer(matrix.shorts.data(), columns);
    each_integer_piece(kernels_, parts, name, [&](int64_t, const int16_t* v, int64_t n) { writer.put(v, n); });
  }
  return matrix;
}

Buffer<float> Unpacker::dense(const std::string& name, int64_t rows, int64_t columns, bool either_form) {
  std::vector<int64_t> shape = {rows};
  if (columns) shape.push_back(columns);
  const Parts parts = take_parts(container_, name, describe(name, shape));
  reserve(4 * padded(parts.n));
  Buffer<float> values = arena_.take<float>(padded(parts.n));
  if (parts.config.bits == 32) {
    const auto copy = [&](int64_t at, const float* v, int64_t n) {
      std::memcpy(values.data() + at, v, size_t(n) * 4);
    };
    each_float_piece(kernels_, parts, name, copy, either_form);
    return values;
  }
  const int64_t row = parts.scales.size == 4 ? parts.n : columns ? columns : 1;  // elements per scale
  each_integer_piece(kernels_, parts, name, [&](int64_t at, const int16_t* v, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      values[at + i] = float(v[i]) * read_at<float>(parts.scales.data + 4 * ((at + i) / row));
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
