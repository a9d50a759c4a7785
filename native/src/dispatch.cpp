#include "dispatch.hpp"

#include <cstdlib>
#include <cstring>

#include "status.hpp"

namespace micronet {

namespace {

// __builtin_cpu_supports also asks whether the system saves the wider registers (XCR0).
bool has_avx2() {
#if defined(MICRONET_X86)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

bool has_avx512() {
#if defined(MICRONET_SIMDE)
  return has_avx2();  // the emulation is compiled for it
#elif defined(MICRONET_X86)
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

const Kernels& fastest_kernels() {
  const Kernels* fastest = scalar_kernels();
  for (const KernelSet& set : kernel_sets())
    if (set.runs) fastest = set.kernels;
  return *fastest;
}

}  // namespace

#if !defined(MICRONET_X86)
const Kernels* avx2_kernels() { return nullptr; }
const Kernels* avx512_kernels() { return nullptr; }
#endif

std::array<KernelSet, 3> kernel_sets() {
  return {{{"scalar", scalar_kernels(), true},
           {"avx2", avx2_kernels(), avx2_kernels() && has_avx2()},
           {"avx512", avx512_kernels(), avx512_kernels() && has_avx512()}}};
}

const Kernels& choose_kernels(const char* name) {
  const char* asked = name;
  const char* by = "";  // who asks, where it is not the caller
  if (std::strcmp(name, "auto") == 0) {
    const char* variable = std::getenv("MICRONET_KERNELS");
    if (!variable || !*variable || std::strcmp(variable, "auto") == 0) return fastest_kernels();
    asked = variable;
    by = ", which MICRONET_KERNELS asks for";
  }
  for (const KernelSet& set : kernel_sets()) {
    if (std::strcmp(asked, set.name) != 0) continue;
    if (set.runs) return *set.kernels;
    fail(MN_ERROR_KERNELS, "this processor or this build has no %s kernels%s; choose auto or scalar", asked, by);
  }
  fail(*by ? MN_ERROR_KERNELS : MN_ERROR_ARGUMENT, "there are no kernels '%.50s'%s; choose auto, scalar, avx2 or avx512",
       asked, by);
}

}  // namespace micronet
