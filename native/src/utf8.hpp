// Validation of UTF-8.
#pragma once

#include "bytes.hpp"

namespace micronet {

// Return whether bytes are strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(Bytes text);

}  // namespace micronet
