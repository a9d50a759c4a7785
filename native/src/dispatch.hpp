// Which kernels this processor can run.
#pragma once

#include "kernels.hpp"

namespace micronet {

// "auto", "scalar", "avx2" or "avx512"; throws Failure.
const Kernels& choose_kernels(const char* name);

}  // namespace micronet
