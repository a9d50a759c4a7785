#include "softmax.hpp"

#include "status.hpp"

namespace micronet {

Batch bin_input(const Model& model, const Bin& bin, const Batch& hidden, States& room, Scratch& scratch) {
  if (!bin.projected) return hidden;
  room.resize(hidden.tokens, bin.table.columns);
  Product(model.kernels, bin.softmax_projection, hidden, bin.projection.on, scratch)
      .all(nullptr, room.values.data(), room.stride);
  room.quantize(model.kernels, bin.projection, hidden.tokens);
  return room.batch(hidden.tokens);
}

void check_finite(float log_sum) {
  if (!std::isfinite(log_sum))
    fail(MN_ERROR_NUMBER, "the model's probabilities are not finite: its weights are too large; pack another model");
}

}  // namespace micronet
