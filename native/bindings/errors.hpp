// The one place where the C API's errors become exceptions of micronet_lm.errors.
//
//   MN_ERROR_FORMAT of a file    ArtifactError   "PATH cannot be used: …"
//   MN_ERROR_FILE of a file      ArtifactError   the engine's sentence, which names the path
//   everything else              InferenceError  the engine's sentence
#pragma once

#include <nanobind/nanobind.h>

#include <cstdarg>
#include <cstdio>
#include <string>

#include "micronet.h"

namespace binding {

// The GIL is held. path: of the file that was being opened, if any.
[[noreturn]] inline void raise(const mn_error& error, const std::string& path) {
  const bool format = error.status == MN_ERROR_FORMAT;
  const bool file = !path.empty() && (format || error.status == MN_ERROR_FILE);
  const nanobind::object type =
      nanobind::module_::import_("micronet_lm.errors").attr(file ? "ArtifactError" : "InferenceError");
  const std::string message = file && format ? path + " cannot be used: " + error.message : error.message;
  PyErr_SetString(type.ptr(), message.c_str());
  throw nanobind::python_error();
}

// Raises an InferenceError, with a printf format, for arguments that the C API cannot take; the GIL is held.
[[noreturn, gnu::format(printf, 1, 2)]] inline void refuse(const char* format, ...) {
  mn_error error{MN_ERROR_ARGUMENT, {}};
  va_list values;
  va_start(values, format);
  std::vsnprintf(error.message, sizeof error.message, format, values);
  va_end(values);
  raise(error, "");
}

// Calls the engine without the GIL, and raises its error. call: mn_status(mn_error*).
template <class Call>
void ask(Call call, const std::string& path = "") {
  mn_error error;
  mn_status status;
  {
    nanobind::gil_scoped_release released;
    status = call(&error);
  }
  if (status != MN_OK) raise(error, path);
}

}  // namespace binding
