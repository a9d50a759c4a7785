// The kernel sets that this processor can run.
#pragma once

#include <array>

#include "kernels.hpp"

namespace micronet {

struct KernelSet {
  const char* name;
  const Kernels* kernels;  // null where this build has none
  bool runs;               // whether it is built, and this processor and its system can run it
};

// All sets there are, the slowest first.
std::array<KernelSet, 3> kernel_sets();

// "auto", "scalar", "avx2" or "avx512"; auto follows the variable MICRONET_KERNELS, and takes the fastest set
// where that says nothing. Throws Failure.
const Kernels& choose_kernels(const char* name);

}  // namespace micronet
