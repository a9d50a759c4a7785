// Shared by the files of the C API: its types, and the conversion of exceptions to statuses.
#pragma once

#include <cstdio>
#include <memory>
#include <new>

#include "micronet.h"
#include "session.hpp"
#include "status.hpp"
#include "suggestions.hpp"

struct mn_model {
  std::unique_ptr<micronet::FileMap> file;  // null for a file in memory
  std::unique_ptr<micronet::Model> model;
};

struct mn_session {
  micronet::Session session;
  micronet::Learned learned = {};  // its words, indexed for suggestions
};

namespace micronet {

inline void set_error(mn_error& to, const char* message, const char* detail = "") {
  to.status = MN_ERROR_MEMORY;
  std::snprintf(to.message, sizeof to.message, "%s%.300s", message, detail);
}

// Run `body` and turn exceptions into a status and a message.
template <class Body>
mn_status guarded(mn_error* error, Body body) noexcept {
  mn_error local;
  mn_error& to = error ? *error : local;
  constexpr const char* kNoMemory = "there is not enough memory; close other models or take a smaller one";
#if defined(__wasm__)
  // Without unwinding tables a catch clause cannot have a type, so `fail` stores its error in last_failure().
  last_failure().status = MN_OK;
  try {
    body();
    to.status = MN_OK;
    to.message[0] = 0;
  } catch (...) {
    if (last_failure().status == MN_OK) set_error(to, kNoMemory);
    else to = last_failure();
  }
#else
  try {
    body();
    to.status = MN_OK;
    to.message[0] = 0;
  } catch (const Failure& failure) {
    to = failure.error();
  } catch (const std::bad_alloc&) {
    set_error(to, kNoMemory);
  } catch (const std::exception& other) {
    set_error(to, "the system refused a request of the engine: ", other.what());
  } catch (...) {
    set_error(to, "the system refused a request of the engine");
  }
#endif
  return to.status;
}

inline void check(bool given) {
  if (!given) fail(MN_ERROR_ARGUMENT, "a required pointer is NULL");
}

inline void check_threads(int threads) {
  if (threads < 1 || threads > 1024) fail(MN_ERROR_ARGUMENT, "threads must be 1 to 1024, got %d", threads);
}

}  // namespace micronet
