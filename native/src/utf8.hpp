// Whether bytes are UTF-8.
#pragma once

#include "bytes.hpp"

namespace micronet {

// Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(Bytes text);

}  // namespace micronet
