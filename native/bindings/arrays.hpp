// Arrays of NumPy: what Python gives the engine, and what the engine gives Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <vector>

#include "errors.hpp"

namespace binding {

namespace nb = nanobind;

using IdArray = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ids = std::vector<int32_t>;
using Room = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<nb::numpy, float, nb::ndim<1>>;
using Integers = nb::ndarray<nb::numpy, int32_t, nb::ndim<1>>;

// Return an array that owns its numbers.
template <class Array, class T>
Array owned(std::unique_ptr<T[]> numbers, size_t count) {
  T* data = numbers.release();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return Array(data, {count}, owner);
}

// Convert an array or a sequence of integers to the engine's ids. They are copied before the engine checks them:
// another thread may change the caller's array at any time, and an array-like object may keep the one that it gives.
inline Ids to_ids(const nb::object& given) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("asarray")(given);
  const std::string kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  const bool empty = nb::cast<size_t>(array.attr("size")) == 0;
  if (nb::cast<int>(array.attr("ndim")) != 1 || (kind != "i" && kind != "u" && !empty))
    refuse("ids must be a 1-D array or a list of integers");
  if (!empty && !array.attr("dtype").equal(numpy.attr("dtype")("int32"))) {
    array = array.attr("copy")();  // so that the values that are checked are those that are converted
    // Ids beyond 32 bits are refused here, all other bad ids by the engine.
    const nb::object most = array.attr("max")(), least = array.attr("min")();
    if (PyObject_RichCompareBool(most.ptr(), nb::int_(INT32_MAX).ptr(), Py_GT) != 0 ||
        PyObject_RichCompareBool(least.ptr(), nb::int_(0).ptr(), Py_LT) != 0)
      refuse("ids must be from 0 to one less than the vocabulary");
  }
  const auto ids = nb::cast<IdArray>(numpy.attr("ascontiguousarray")(array, "int32"));
  return Ids(ids.data(), ids.data() + ids.shape(0));
}

}  // namespace binding
