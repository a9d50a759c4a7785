// The kernel sets that this processor can run.
#pragma once

#include <vector>

#include "kernels.hpp"

namespace micronet {

struct KernelSet {
  const char* name;
  const Kernels* kernels;
  bool runs;  // whether this processor and operating system can run it
};

// Return all kernel sets for processors of this kind, the slowest first.
std::vector<KernelSet> kernel_sets();

// Return the kernel set of this name. "auto" means the set that the variable MICRONET_KERNELS names, or the
// fastest that runs here if the variable is unset. Throws Failure.
const Kernels& choose_kernels(const char* name);

}  // namespace micronet
