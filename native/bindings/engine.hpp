// A model for Python: it opens a packed file, starts sessions and scores.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arrays.hpp"
#include "errors.hpp"
#include "micronet.h"
#include "recollections.hpp"
#include "session.hpp"
#include "text.hpp"

namespace binding {

class Engine {
 public:
  Engine(const std::string& path, const std::string& kernels) {
    mn_model* model = nullptr;
    ask([&](mn_error* e) { return mn_model_open(path.c_str(), kernels.c_str(), &model, e); }, path);
    model_ = ModelPointer(model, CloseModel());
  }

  int32_t vocabulary_size() const { return mn_model_vocabulary_size(model_.get()); }
  const char* kernels() const { return mn_model_kernels(model_.get()); }
  uint64_t checksum() const { return mn_model_checksum(model_.get()); }
  nb::str metadata() const {
    size_t size = 0;
    const char* text = mn_model_metadata(model_.get(), &size);
    return nb::str(text, size);
  }

  nb::str word(int32_t id) const {
    size_t size = 0;
    const char* word = mn_model_word(model_.get(), id, &size);
    if (!word) refuse("there is no word %d: choose ids from 0 to %d", id, vocabulary_size() - 1);
    return nb::str(word, size);
  }

  std::optional<int32_t> find(std::string_view word) const {
    const int32_t id = mn_model_find(model_.get(), word.data(), word.size());
    return id < 0 ? std::nullopt : std::optional<int32_t>(id);
  }

  std::optional<double> spelling(std::string_view word) const {
    if (!mn_model_has_spelling(model_.get())) return std::nullopt;
    double result = 0;
    ask([&](mn_error* e) { return mn_model_spelling(model_.get(), word.data(), word.size(), &result, e); });
    return result;
  }

  Session* start() const {
    mn_session* session = nullptr;
    ask([&](mn_error* e) { return mn_session_start(model_.get(), &session, e); });
    return new Session(model_, session);  // Python owns it
  }

  Recollections* recollect(const Halves& states, const nb::object& following, const std::vector<std::string>& words,
                           const std::vector<uint32_t>& counts, double state_share, double word_share) const {
    return new Recollections(model_, states, to_ids(following), words, counts, state_share, word_share);  // Python owns it
  }

  Session* restore(const nb::bytes& saved) const {
    mn_session* session = nullptr;
    const void* data = saved.data();
    const size_t size = saved.size();
    ask([&](mn_error* e) { return mn_session_restore(model_.get(), data, size, &session, e); });
    return new Session(model_, session);  // Python owns it
  }

  TextState* text() const { return new TextState(model_); }  // Python owns it
  TextState* restore_text(const nb::bytes& saved) const { return new TextState(model_, saved); }
  Memory* memory(const std::string& path) const { return new Memory(model_, path); }  // Python owns it
  nb::object suggest(std::string_view text, int32_t k) const { return binding::suggest(model_, text, k); }
  nb::list score_text(const std::string& text) const { return binding::score_text(model_, text); }

  Floats score(const nb::object& given, int threads) const {
    const Ids ids = to_ids(given);
    const size_t count = ids.size();
    check_length(count);
    std::unique_ptr<float[]> numbers(new float[count - 1]);
    ask([&](mn_error* e) { return mn_model_score(model_.get(), ids.data(), count, threads, numbers.get(), e); });
    return owned<Floats>(std::move(numbers), count - 1);
  }

  Floats score_open(const nb::object& given, Doubles spelled, int threads) const {
    const Ids ids = to_ids(given);
    const size_t count = ids.size();
    check_length(count);
    std::unique_ptr<float[]> numbers(new float[count - 1]);
    ask([&](mn_error* e) {
      return mn_model_score_open(model_.get(), ids.data(), count, spelled.data(), spelled.shape(0), threads,
                                 numbers.get(), e);
    });
    return owned<Floats>(std::move(numbers), count - 1);
  }

  std::vector<Floats> score_batch(const std::vector<nb::object>& given, int threads) const {
    std::vector<Ids> texts;
    for (const nb::object& text : given) texts.push_back(to_ids(text));
    std::vector<std::unique_ptr<float[]>> numbers;
    std::vector<const int32_t*> ids;
    std::vector<size_t> counts;
    std::vector<float*> places;
    for (const Ids& text : texts) {
      check_length(text.size());
      ids.push_back(text.data());
      counts.push_back(text.size());
      numbers.emplace_back(new float[counts.back() - 1]);
      places.push_back(numbers.back().get());
    }
    ask([&](mn_error* e) {
      return mn_model_score_batch(model_.get(), ids.data(), counts.data(), texts.size(), threads, places.data(), e);
    });
    std::vector<Floats> results;
    for (size_t i = 0; i < texts.size(); ++i)
      results.push_back(owned<Floats>(std::move(numbers[i]), counts[i] - 1));
    return results;
  }

 private:
  static void check_length(size_t count) {
    if (count < 2)
      refuse("a text of %zu tokens has nothing to score: give at least 2, the first is only read", count);
  }

  ModelPointer model_;
};

inline void add_engine(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<Engine>(module, "Engine", "A packed model that is ready to run.")
      .def(nb::init<const std::string&, const std::string&>(), "path"_a, nb::kw_only(), "kernels"_a = "auto")
      .def_prop_ro("vocabulary_size", &Engine::vocabulary_size, "The number of words in the vocabulary.")
      .def_prop_ro("metadata", &Engine::metadata, "The packed file's metadata, a JSON object.")
      .def_prop_ro("kernels", &Engine::kernels, "The name of the kernel set in use.")
      .def("word", &Engine::word, "token"_a, "Return the word of an id.")
      .def("find", &Engine::find, "word"_a, "Return the id of a word; None if the vocabulary lacks it.")
      .def("spelling", &Engine::spelling, "word"_a,
           "Return log P_spelling of a word outside the vocabulary; None without a spelling model.")
      .def("start", &Engine::start, "Start a session.")
      .def("recollect", &Engine::recollect, "states"_a.noconvert(), "following"_a, "words"_a, "counts"_a,
           "state_share"_a, "word_share"_a, "Make recollections; states are halves as uint16.")
      .def_prop_ro("checksum", &Engine::checksum, "The checksum of the packed file.")
      .def("restore", &Engine::restore, "saved"_a, "Restore a saved session.")
      .def("text", &Engine::text, "Start a text that is fed as text.")
      .def("restore_text", &Engine::restore_text, "saved"_a, "Restore a saved text.")
      .def("memory", &Engine::memory, "path"_a, "Open a person's memory.")
      .def("suggest", &Engine::suggest, "text"_a, "k"_a,
           "Return words for someone who has typed a text, what they replace, and the number of tokens read.")
      .def("score_text", &Engine::score_text, "text"_a,
           "Return (token, piece, log-probability) of every token of a text.")
      .def("score", &Engine::score, "tokens"_a, "threads"_a = 1,
           "Return the log-probability of every token after the first.")
      .def("score_open", &Engine::score_open, "tokens"_a, "spelled"_a, "threads"_a = 1,
           "Return the same for a text with added words, whose log P_spelling are given.")
      .def("score_batch", &Engine::score_batch, "texts"_a, "threads"_a = 1, "Return `score` of several texts.");
}

}  // namespace binding
