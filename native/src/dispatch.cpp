#include "dispatch.hpp"

#include <cstring>

#include "status.hpp"

namespace micronet {

namespace {

bool has_avx2() {
#if defined(MICRONET_X86)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

bool has_avx512() {
#if defined(MICRONET_X86)
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

}  // namespace

#if !defined(MICRONET_X86)
const Kernels* avx2_kernels() { return nullptr; }
const Kernels* avx512_kernels() { return nullptr; }
#endif

const Kernels& choose_kernels(const char* name) {
  const bool automatic = std::strcmp(name, "auto") == 0;
  struct Choice {
    const char* name;
    const Kernels* kernels;
    bool runs;
  };
  const Choice choices[] = {{"avx512", avx512_kernels(), has_avx512()},
                            {"avx2", avx2_kernels(), has_avx2()},
                            {"scalar", scalar_kernels(), true}};
  for (const Choice& choice : choices) {
    const bool asked = std::strcmp(name, choice.name) == 0;
    if (!asked && !automatic) continue;
    if (choice.kernels && choice.runs) return *choice.kernels;
    if (asked)
      fail(MN_ERROR_KERNELS, "this processor or this build has no %s kernels; take auto or scalar", name);
  }
  fail(MN_ERROR_ARGUMENT, "there are no kernels '%.50s'; take auto, scalar, avx2 or avx512", name);
}

}  // namespace micronet
