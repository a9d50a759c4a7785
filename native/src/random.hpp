// Random numbers in [0, 1): those of NumPy's default_rng(seed).random(), so that a seed gives the same words in Python.
#pragma once

#include <cstdint>

namespace micronet {

// PCG64 (O'Neill 2014, XSL-RR), seeded as NumPy does it.
class Random {
 public:
  explicit Random(uint64_t seed = 0);
  double next();

 private:
  struct Wide {  // 128 bits
    uint64_t high, low;
  };
  static Wide add(Wide a, Wide b);
  static Wide multiply(Wide a, Wide b);
  void step();

  Wide state_{0, 0}, increment_{0, 0};
};

}  // namespace micronet
