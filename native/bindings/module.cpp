// The Python module micronet_lm.runtime._native: the interface of micronet_lm.runtime.engine over the C API.
//
// Every call that takes longer than a look-up releases the GIL. A session has a lock, so that threads that
// share one by mistake wait for each other instead of corrupting it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "errors.hpp"
#include "micronet.h"
#include "recollections.hpp"
#include "text.hpp"

namespace nb = nanobind;
using binding::ask, binding::CloseModel;
using binding::Halves;
using binding::ModelPointer;
using binding::Recollections;
using binding::refuse;

namespace {

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
Ids to_ids(const nb::object& given) {
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

struct FreeSession {
  void operator()(mn_session* session) const { mn_session_free(session); }
};

class Session {
 public:
  Session(ModelPointer model, mn_session* session) : model_(std::move(model)), session_(session) {}

  uint64_t tokens() {
    std::lock_guard<std::mutex> lock(mutex_);
    return mn_session_tokens(session_.get());
  }

  void feed(int32_t id) {
    ask_alone([&](mn_error* e) { return mn_session_feed(session_.get(), id, e); });
  }

  void feed_many(const nb::object& given) {
    const Ids ids = to_ids(given);
    ask_alone([&](mn_error* e) { return mn_session_feed_many(session_.get(), ids.data(), ids.size(), e); });
  }

  float log_probability(int32_t id) {
    float result = 0;
    ask_alone([&](mn_error* e) { return mn_session_log_probability(session_.get(), id, &result, e); });
    return result;
  }

  nb::object log_distribution(std::optional<Room> room) {
    const auto words = size_t(mn_model_vocabulary_size(model_.get()));
    if (room) {
      if (room->shape(0) != words)
        refuse("the array for the log-probabilities must have one number for each word");
      ask_alone([&](mn_error* e) { return mn_session_log_distribution(session_.get(), room->data(), e); });
      return nb::cast(*room);
    }
    std::unique_ptr<float[]> numbers(new float[words]);
    ask_alone([&](mn_error* e) { return mn_session_log_distribution(session_.get(), numbers.get(), e); });
    return nb::cast(owned<Floats>(std::move(numbers), words));
  }

  nb::tuple top_k(int32_t k) {
    k = std::min(k, mn_model_vocabulary_size(model_.get()));
    const auto room = size_t(std::max(k, 1));
    std::unique_ptr<int32_t[]> ids(new int32_t[room]);
    std::unique_ptr<float[]> numbers(new float[room]);
    ask_alone([&](mn_error* e) { return mn_session_top_k(session_.get(), k, ids.get(), numbers.get(), e); });
    return nb::make_tuple(owned<Integers>(std::move(ids), room), owned<Floats>(std::move(numbers), room));
  }

  nb::tuple complete(std::string_view prefix, int32_t k) {
    k = std::min(k, mn_model_vocabulary_size(model_.get()));
    const auto room = size_t(std::max(k, 1));
    std::unique_ptr<int32_t[]> ids(new int32_t[room]);
    std::unique_ptr<float[]> numbers(new float[room]);
    int32_t found = 0;
    ask_alone([&](mn_error* e) {
      return mn_session_complete(session_.get(), prefix.data(), prefix.size(), k, ids.get(), numbers.get(), &found, e);
    });
    return nb::make_tuple(owned<Integers>(std::move(ids), size_t(found)),
                          owned<Floats>(std::move(numbers), size_t(found)));
  }

  nb::list next_words(std::string_view before, int32_t k) {
    return words_alone([&](mn_words** w, mn_error* e) {
      return mn_session_next_words(session_.get(), before.data(), before.size(), k, w, e);
    });
  }

  nb::list completions(std::string_view before, std::string_view prefix, int32_t k) {
    return words_alone([&](mn_words** w, mn_error* e) {
      return mn_session_completions(session_.get(), before.data(), before.size(), prefix.data(), prefix.size(), k, w, e);
    });
  }

  nb::list suggest(std::string_view before, std::string_view typed, bool spaced, int32_t k) {
    return words_alone([&](mn_words** w, mn_error* e) {
      return mn_session_suggest(session_.get(), before.data(), before.size(), typed.data(), typed.size(), spaced, k, w, e);
    });
  }

  int32_t sample(double u, double temperature, int32_t top_k, double top_p) {
    int32_t id = 0;
    ask_alone([&](mn_error* e) { return mn_session_sample(session_.get(), u, temperature, top_k, top_p, &id, e); });
    return id;
  }

  nb::tuple influence(int32_t id, int32_t k) {
    // There are at most as many votes as words read.
    const auto room = size_t(std::clamp<int64_t>(k, 0, int64_t(tokens())));
    std::vector<int64_t> places(room + 1);
    std::vector<double> parts(room + 1);
    mn_influence told{};
    int32_t found = 0;
    ask_alone([&](mn_error* e) {
      return mn_session_influence(session_.get(), id, std::min(k, int32_t(room)), &told, places.data(), parts.data(), &found, e);
    });
    nb::list voters;
    for (size_t i = 0; i < size_t(found); ++i) voters.append(nb::make_tuple(places[i], parts[i]));
    return nb::make_tuple(told.without_cache, told.share, told.cache, nb::tuple(voters));
  }

  Session* fork() {
    mn_session* copy = nullptr;
    ask_alone([&](mn_error* e) { return mn_session_fork(session_.get(), &copy, e); });
    return new Session(model_, copy);  // Python owns it
  }

  int32_t add(std::string_view word) {
    int32_t id = 0;
    ask_alone([&](mn_error* e) { return mn_session_add_word(session_.get(), word.data(), word.size(), &id, e); });
    return id;
  }

  void recall(const Recollections* recollections) {
    const mn_recollections* own = recollections ? recollections->get() : nullptr;
    ask_alone([&](mn_error* e) { return mn_session_recall(session_.get(), own, e); });
  }

  // Return the states one after the other, and the words that followed them.
  nb::tuple remembered(size_t room, size_t width) {
    std::unique_ptr<float[]> states(new float[room * width]);
    std::unique_ptr<int32_t[]> words(new int32_t[room]);
    size_t count = 0;
    ask_alone([&](mn_error* e) {
      return mn_session_remembered(session_.get(), room, states.get(), words.get(), &count, e);
    });
    return nb::make_tuple(owned<Floats>(std::move(states), count * width), owned<Integers>(std::move(words), count));
  }

  void forget(std::string_view word) {
    ask_alone([&](mn_error* e) { return mn_session_forget_word(session_.get(), word.data(), word.size(), e); });
  }

  int32_t added() {
    std::lock_guard<std::mutex> lock(mutex_);
    return mn_session_added(session_.get());
  }

  nb::str word(int32_t id) {
    std::lock_guard<std::mutex> lock(mutex_);
    size_t size = 0;
    const char* word = mn_session_word(session_.get(), id, &size);
    if (!word) refuse("there is no word %d in the vocabulary or the session", id);
    return nb::str(word, size);
  }

  std::optional<int32_t> find(std::string_view word) {
    std::lock_guard<std::mutex> lock(mutex_);
    const int32_t id = mn_session_find(session_.get(), word.data(), word.size());
    return id < 0 ? std::nullopt : std::optional<int32_t>(id);
  }

  nb::bytes save() {
    std::vector<char> bytes;
    ask_alone([&](mn_error* e) {
      size_t size = 0;
      const mn_status status = mn_session_save(session_.get(), nullptr, &size, e);
      if (status != MN_OK) return status;
      bytes.resize(size);
      return mn_session_save(session_.get(), bytes.data(), &size, e);
    });
    return nb::bytes(bytes.data(), bytes.size());
  }

 private:
  // Call `ask` while no other thread uses this session.
  template <class Call>
  void ask_alone(Call call) {
    ask([&](mn_error* e) {
      std::lock_guard<std::mutex> lock(mutex_);
      return call(e);
    });
  }

  // The same for words with their numbers.
  template <class Call>
  nb::list words_alone(Call call) {
    return binding::words_of(
        [&](mn_words** words, mn_error* e) {
          std::lock_guard<std::mutex> lock(mutex_);
          return call(words, e);
        },
        binding::with_number);
  }

  ModelPointer model_;  // outlives the session
  std::unique_ptr<mn_session, FreeSession> session_;
  std::mutex mutex_;
};

// Return (name, built, runs, chosen) of each kernel set, the slowest first.
nb::list kernel_sets() {
  std::vector<mn_kernel_set> sets(mn_kernel_sets(nullptr, 0));
  mn_kernel_sets(sets.data(), sets.size());
  nb::list found;
  for (const mn_kernel_set& set : sets)
    found.append(nb::make_tuple(set.name, set.built != 0, set.runs != 0, set.chosen != 0));
  return found;
}

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

  binding::TextState* text() const { return new binding::TextState(model_); }  // Python owns it
  binding::TextState* restore_text(const nb::bytes& saved) const { return new binding::TextState(model_, saved); }
  binding::Memory* memory(const std::string& path) const { return new binding::Memory(model_, path); }  // Python owns it
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

  nb::class_<Recollections>(module, "Recollections", "What sessions recall of earlier texts.");

  nb::class_<Session>(module, "Session", "One text that is read token by token.")
      .def_prop_ro("tokens", &Session::tokens, "The number of tokens fed.")
      .def("feed", &Session::feed, "token"_a, "Read the next token.")
      .def("feed_many", &Session::feed_many, "tokens"_a, "Read several tokens.")
      .def("log_probability", &Session::log_probability, "token"_a,
           "Return the log-probability that this token comes next.")
      .def("log_distribution", &Session::log_distribution, "out"_a.noconvert() = nb::none(),  // a converted copy would be filled instead
           "Return the log-probabilities of all words, written to `out` if it is given.")
      .def("influence", &Session::influence, "token"_a, "k"_a,
           "Return log P without the cache, the cache's share, its P of the token, and its k largest votes.")
      .def("top_k", &Session::top_k, "k"_a, "Return ids and log-probabilities of the k likeliest words.")
      .def("complete", &Session::complete, "prefix"_a, "k"_a,
           "Return the same as top_k, among the words that begin with `prefix`.")
      .def("next_words", &Session::next_words, "before"_a, "k"_a,
           "Return the k likeliest words for a screen after a token, with their probabilities.")
      .def("completions", &Session::completions, "before"_a, "prefix"_a, "k"_a, "Return those that begin with `prefix`.")
      .def("suggest", &Session::suggest, "before"_a, "typed"_a, "spaced"_a, "k"_a,
           "Return words for someone who types: endings of what was typed, or next words.")
      .def("sample", &Session::sample, "u"_a, "temperature"_a = 1.0, "top_k"_a = 0, "top_p"_a = 1.0,
           "Choose the next word by a number `u` in [0, 1).")
      .def("add", &Session::add, "word"_a, "Return the id of a word; add it to the session if it has none.")
      .def_prop_ro("added", &Session::added, "The number of words added to the session.")
      .def("word", &Session::word, "token"_a, "Return the word of an id, added ones included.")
      .def("find", &Session::find, "word"_a, "Return the id of a word, added ones included; None for others.")
      .def("recall", &Session::recall, "recollections"_a.none(), "Mix recollections into all predictions; None ends it.")
      .def("remembered", &Session::remembered, "room"_a, "width"_a,
           "Return the last states of the cache, one after the other, and the words that followed them.")
      .def("forget", &Session::forget, "word"_a, "Take a word out of the cache and of the session's words.")
      .def("fork", &Session::fork, "Return a copy of the session.")
      .def("save", &Session::save, "Return the whole session as bytes.");

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
