// Errors inside the engine are exceptions; api.cpp turns them into a status and a message.
#pragma once

#include <cstdarg>
#include <exception>

#include "micronet.h"

namespace micronet {

class Failure : public std::exception {
 public:
  Failure(mn_status status, const char* format, std::va_list arguments) noexcept;
  const char* what() const noexcept override { return error_.message; }
  const mn_error& error() const noexcept { return error_; }

 private:
  mn_error error_;
};

#if defined(__wasm__)
mn_error& last_failure();  // the last error of `fail` (api_guard.hpp)
#endif

// Throw a Failure with a formatted message.
[[noreturn, gnu::format(printf, 2, 3)]] void fail(mn_status status, const char* format, ...);

}  // namespace micronet
