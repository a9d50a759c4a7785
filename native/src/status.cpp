#include "status.hpp"

#include <cstdio>

namespace micronet {

Failure::Failure(mn_status status, const char* format, std::va_list arguments) noexcept {
  error_.status = status;
  std::vsnprintf(error_.message, sizeof error_.message, format, arguments);
}

void fail(mn_status status, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  Failure failure(status, format, arguments);
  va_end(arguments);
  throw failure;
}

}  // namespace micronet
