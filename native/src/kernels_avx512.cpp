// The kernels for processors with AVX-512 and VNNI; the build compiles this file for them. 9-bit weights are stored
// in the order that suits AVX2 (nines.hpp), so they and unpacking use the 256-bit vectors.
#include "simd_avx512.hpp"
#include "kernels_template.hpp"

namespace micronet {

const Kernels* avx512_kernels() {
  static constexpr Kernels kTable = table<Avx512, Avx2Vnni>("avx512");
  return &kTable;
}

}  // namespace micronet
