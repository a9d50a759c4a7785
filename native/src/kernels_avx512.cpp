// The kernels for processors with AVX-512 and VNNI; the build compiles this file for them. Weights of 9
// bits, attention's integers and unpacking are left to AVX2's instructions here too: with wider ones these
// kernels have not been run.
#include "simd_avx2.hpp"
#include "simd_avx512.hpp"
#include "kernels_template.hpp"

namespace micronet {

const Kernels* avx512_kernels() {
  static constexpr Kernels kTable = table<Avx512, Avx2>("avx512");
  return &kTable;
}

}  // namespace micronet
