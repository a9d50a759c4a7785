// Turn errors of the C API into exceptions of micronet_lm.errors. Only this file does that.
//
//   MN_ERROR_FORMAT, opening a file   ArtifactError   "PATH cannot be used: …"
//   MN_ERROR_FILE, opening a file     ArtifactError   the engine's message, which names the path
//   everything else                   InferenceError  the engine's message
#pragma once

#include <nanobind/nanobind.h>

#include <cstdarg>
#include <cstdio>
#include <string>

#include "micronet.h"

namespace binding {

// Raise the exception for an error. The GIL must be held. path: of the file being opened, if any.
[[noreturn]] inline void raise(const mn_error& error, const std::string& path) {
  const bool format = error.status == MN_ERROR_FORMAT;
  const bool file = !path.empty() && (format || error.status == MN_ERROR_FILE);
  const nanobind::object type =
      nanobind::module_::import_("micronet_lm.errors").attr(file ? "ArtifactError" : "InferenceError");
  const std::string message = file && format ? path + " cannot be used: " + error.message : error.message;
  PyErr_SetString(type.ptr(), message.c_str());
  throw nanobind::python_error();
}

// Raise an InferenceError, with a printf format, for arguments that the C API cannot take. The GIL must be held.
[[noreturn, gnu::format(printf, 1, 2)]] inline void refuse(const char* format, ...) {
  mn_error error{MN_ERROR_ARGUMENT, {}};
  va_list values;
  va_start(values, format);
  std::vsnprintf(error.message, sizeof error.message, format, values);
  va_end(values);
  raise(error, "");
}

// Call the engine without the GIL and raise its error. call: mn_status(mn_error*).
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
