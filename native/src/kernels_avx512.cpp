// The kernels for processors with AVX-512 and VNNI; the build compiles this file for them.
#include "simd_avx512.hpp"
#include "kernels_template.hpp"

namespace micronet {

const Kernels* avx512_kernels() {
  static constexpr Kernels kTable = table<Avx512>("avx512");
  return &kTable;
}

}  // namespace micronet
