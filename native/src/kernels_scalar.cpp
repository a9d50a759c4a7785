// The kernels in plain C++, for every processor.
#include "simd_scalar.hpp"
#include "kernels_template.hpp"

namespace micronet {

const Kernels* scalar_kernels() {
  static constexpr Kernels kTable = table<Scalar>("scalar");
  return &kTable;
}

}  // namespace micronet
