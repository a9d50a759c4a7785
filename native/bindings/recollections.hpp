// Recollections for Python: what sessions recall of earlier texts.
#pragma once

#include <nanobind/ndarray.h>

#include "text.hpp"

namespace binding {

using Halves = nb::ndarray<const uint16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // numbers in half precision

// Recollections of earlier texts, which sessions recall.
class Recollections {
 public:
  Recollections(ModelPointer model, const Halves& states, const std::vector<int32_t>& following, const std::vector<std::string>& words,
                const std::vector<uint32_t>& counts, double state_share, double word_share)
      : model_(std::move(model)) {
    if (states.shape(0) != following.size() || words.size() != counts.size())
      refuse("each recalled state needs the word that followed it, and each word its count");
    std::vector<const char*> texts;
    std::vector<size_t> sizes;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    mn_recollections* made = nullptr;
    ask([&](mn_error* e) {
      return mn_recollections_new(model_.get(), states.data(), following.data(), following.size(), texts.data(),
                                  sizes.data(), counts.data(), words.size(), state_share, word_share, &made, e);
    });
    recollections_.reset(made);
  }
  const mn_recollections* get() const { return recollections_.get(); }

 private:
  struct Free {
    void operator()(mn_recollections* recollections) const { mn_recollections_free(recollections); }
  };
  ModelPointer model_;  // outlives the recollections
  std::unique_ptr<mn_recollections, Free> recollections_;
};

}  // namespace binding
