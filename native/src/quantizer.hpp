// A quantizer of activations (docs/arithmetic.md).
#pragma once

namespace micronet {

struct Quantizer {
  bool on = false;  // false if the place is not quantized
  int bits = 0;
  float scale = 0;    // Δ; 0 where every integer is 0
  float inverse = 0;  // 1/Δ; 0 if Δ is 0
  float limit = 0;    // M, the largest integer
};

}  // namespace micronet
