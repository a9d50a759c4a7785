#include "status.hpp"

#include <cstdio>

namespace micronet {

Failure::Failure(mn_status status, const char* format, std::va_list arguments) noexcept {
  error_.status = status;
  std::vsnprintf(error_.message, sizeof error_.message, format, arguments);
}

#if defined(__wasm__)
mn_error& last_failure() {
  static mn_error error;
  return error;
}
#endif

void fail(mn_status status, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  Failure failure(status, format, arguments);
  va_end(arguments);
#if defined(__wasm__)
  last_failure() = failure.error();
#endif
  throw failure;
}

}  // namespace micronet
