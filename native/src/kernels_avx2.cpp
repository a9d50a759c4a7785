// The kernels for processors with AVX2 and FMA; the build compiles this file for them.
#include "simd_avx2.hpp"
#include "kernels_template.hpp"

namespace micronet {

const Kernels* avx2_kernels() {
  static constexpr Kernels kTable = table<Avx2>("avx2");
  return &kTable;
}

}  // namespace micronet
