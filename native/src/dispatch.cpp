#include "dispatch.hpp"

#include <cstdlib>
#include <cstring>
#include <string>

#include "status.hpp"

namespace micronet {

namespace {

#if defined(MICRONET_X86)

// __builtin_cpu_supports also asks whether the system saves the wider registers (XCR0).
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool has_avx512() {
#if defined(MICRONET_SIMDE)
  return has_avx2();  // the emulation is compiled for it
#else
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
#endif
}

#endif

const char* kernels_variable() {
#if defined(__wasm__)
  return nullptr;  // there is no environment
#else
  return std::getenv("MICRONET_KERNELS");
#endif
}

const Kernels& fastest_kernels() {
  const Kernels* fastest = nullptr;
  for (const KernelSet& set : kernel_sets())
    if (set.runs) fastest = set.kernels;
  return *fastest;
}

// ", scalar, avx2 or avx512".
std::string names_of_sets() {
  const std::vector<KernelSet> sets = kernel_sets();
  std::string names;
  for (const KernelSet& set : sets) names += std::string(&set == &sets.back() ? " or " : ", ") + set.name;
  return names;
}

}  // namespace

std::vector<KernelSet> kernel_sets() {
#if defined(MICRONET_X86)
  return {{"scalar", scalar_kernels(), true}, {"avx2", avx2_kernels(), has_avx2()}, {"avx512", avx512_kernels(), has_avx512()}};
#elif defined(MICRONET_NEON)
  return {{"scalar", scalar_kernels(), true}, {"neon", neon_kernels(), true}};  // every 64-bit ARM has it
#elif defined(MICRONET_SIMD128)
  return {{"simd128", simd128_kernels(), true}};  // scalar kernels would only make the module larger
#else
  return {{"scalar", scalar_kernels(), true}};
#endif
}

const Kernels& choose_kernels(const char* name) {
  const char* asked = name;
  const char* by = "";  // names the variable in messages, if the name came from there
  if (std::strcmp(name, "auto") == 0) {
    const char* variable = kernels_variable();
    if (!variable || !*variable || std::strcmp(variable, "auto") == 0) return fastest_kernels();
    asked = variable;
    by = ", which MICRONET_KERNELS asks for";
  }
  for (const KernelSet& set : kernel_sets()) {
    if (std::strcmp(asked, set.name) != 0) continue;
    if (set.runs) return *set.kernels;
    fail(MN_ERROR_KERNELS, "this processor or this build has no %s kernels%s; choose auto or scalar", asked, by);
  }
  fail(*by ? MN_ERROR_KERNELS : MN_ERROR_ARGUMENT, "there are no kernels '%.50s'%s; choose auto%s", asked, by,
       names_of_sets().c_str());
}

}  // namespace micronet
