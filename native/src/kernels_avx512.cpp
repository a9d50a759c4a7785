// The kernels for processors with AVX-512 and VNNI; the build compiles this file for them. Weights of 9 bits
// lie as AVX2's instructions put them together (nines.hpp), so they and unpacking keep the narrower vectors.
#include "simd_avx512.hpp"
#include "kernels_template.hpp"

namespace micronet {

const Kernels* avx512_kernels() {
  static constexpr Kernels kTable = table<Avx512, Avx2Vnni>("avx512");
  return &kTable;
}

}  // namespace micronet
