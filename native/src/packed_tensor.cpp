#include "packed_tensor.hpp"

#include <cmath>

#include "bitstream.hpp"
#include "coded_stream.hpp"
#include "status.hpp"

namespace micronet {

namespace {

int64_t count_elements(const TensorConfig& config) {
  int64_t n = 1;
  for (int64_t size : config.shape) n *= size;
  return n;
}

}  // namespace

void damaged(const std::string& name, const char* why) {
  fail(MN_ERROR_FORMAT, "the tensor %.100s has %s; pack the model again", name.c_str(), why);
}

// 0, or from 2^-126 to 2^100 with zeros in the last b bits of the mantissa.
bool is_scale(float scale, int bits) {
  if (scale == 0) return !std::signbit(scale);
  if (!(scale >= 0x1p-126f && scale <= 0x1p100f)) return false;
  uint32_t image;
  std::memcpy(&image, &scale, 4);
  return (image & ((uint32_t{1} << bits) - 1)) == 0;
}

void check_form(const PackedTensor& tensor, int64_t nonzeros) {
  const int bits = tensor.config.bits;
  const bool sparse = nonzeros * bits + tensor.elements < tensor.elements * bits;
  if (sparse != tensor.config.sparse()) damaged(tensor.name, "the longer of its two forms, dense or sparse");
}

PackedTensor take_tensor(Container& container, const std::string& name, const TensorConfig& config) {
  PackedTensor tensor{name, config, count_elements(config), {}, {}, {}, false};
  if (config.sparse()) {
    if (config.nonzeros > tensor.elements) damaged(name, "more non-zeros than elements");
    tensor.mask = container.take(name + ".mask", false, {(tensor.elements + 7) / 8});
    check_mask(tensor.mask, tensor.elements, config.nonzeros, name);
    check_form(tensor, config.nonzeros);
  }
  if (config.bits == 32) {
    tensor.content = config.sparse() ? container.take(name + ".values", true, {config.nonzeros})
                                     : container.take(name, true, config.shape);
    return tensor;
  }
  tensor.coded = config.may_be_coded && !config.sparse() && config.bits <= kWidestCoded && container.has(name + ".coded");
  tensor.content = tensor.coded
                       ? container.take(name + ".coded", false, {container.length(name + ".coded", false)})
                       : container.take(name + ".integers", false, {(tensor.stored() * config.bits + 7) / 8});
  const int64_t scales = container.length(name + ".steps", true);
  if (scales != 1 && scales != config.shape[0]) damaged(name, "neither one scale nor one per row");
  tensor.scales = container.take(name + ".steps", true, {scales});
  for (int64_t i = 0; i < scales; ++i)
    if (!is_scale(read_at<float>(tensor.scales.data + 4 * i), config.bits))
      damaged(name, "a scale that is not finite, negative, too large, too small or too fine");
  return tensor;
}

}  // namespace micronet
