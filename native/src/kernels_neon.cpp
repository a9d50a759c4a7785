// The kernels for 64-bit ARM, all of which have NEON.
#include "simd_neon.hpp"
#include "kernels_template.hpp"

namespace micronet {

const Kernels* neon_kernels() {
  static constexpr Kernels kTable = table<Neon>("neon");
  return &kTable;
}

}  // namespace micronet
