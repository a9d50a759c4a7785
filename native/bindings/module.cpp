// The Python module micronet_lm.runtime._native: the interface of micronet_lm.runtime.engine over the C API.
//
// Every call that takes longer than a look-up releases the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "engine.hpp"
#include "micronet.h"
#include "recollections.hpp"
#include "session.hpp"
#include "text.hpp"

namespace nb = nanobind;

namespace {

// Return (name, built, runs, chosen) of each kernel set, the slowest first.
nb::list kernel_sets() {
  std::vector<mn_kernel_set> sets(mn_kernel_sets(nullptr, 0));
  mn_kernel_sets(sets.data(), sets.size());
  nb::list found;
  for (const mn_kernel_set& set : sets)
    found.append(nb::make_tuple(set.name, set.built != 0, set.runs != 0, set.chosen != 0));
  return found;
}

}  // namespace

NB_MODULE(_native, module) {
  module.doc() = "The native engine: it implements micronet_lm.runtime.engine; ids are int32 arrays.";
  using namespace nb::literals;

  module.def(
      "checksum",
      [](const nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& bytes) {
        nb::gil_scoped_release released;
        return mn_checksum(bytes.data(), bytes.shape(0));
      },
      "bytes"_a.noconvert(), "The checksum of packed files, of an array of uint8.");
  module.def("kernel_sets", &kernel_sets, "Return (name, built, runs, chosen) of each kernel set, the slowest first.");

  binding::add_text(module);
  nb::class_<binding::Recollections>(module, "Recollections", "What sessions recall of earlier texts.");
  binding::add_session(module);
  binding::add_engine(module);
}
