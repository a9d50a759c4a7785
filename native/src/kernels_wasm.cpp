// The kernels for WebAssembly, compiled with -msimd128.
#include "simd_wasm.hpp"
#include "kernels_template.hpp"

namespace micronet {

const Kernels* simd128_kernels() {
  static constexpr Kernels kTable = table<Simd128>("simd128");
  return &kTable;
}

}  // namespace micronet
