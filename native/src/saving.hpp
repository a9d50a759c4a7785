// Sessions as bytes.
#pragma once

#include <vector>

#include "session.hpp"

namespace micronet {

size_t saved_size(const Session& session);
void save(const Session& session, uint8_t* bytes);  // saved_size(session) bytes
Session restore(const Model& model, Bytes bytes);   // throws Failure

}  // namespace micronet
