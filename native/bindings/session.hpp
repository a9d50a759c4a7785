// A session for Python. It has a lock, so that threads that share one by mistake wait for each other instead of
// corrupting it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "arrays.hpp"
#include "errors.hpp"
#include "micronet.h"
#include "recollections.hpp"
#include "text.hpp"

namespace binding {

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
    return words_of(
        [&](mn_words** words, mn_error* e) {
          std::lock_guard<std::mutex> lock(mutex_);
          return call(words, e);
        },
        with_number);
  }

  ModelPointer model_;  // outlives the session
  std::unique_ptr<mn_session, FreeSession> session_;
  std::mutex mutex_;
};

inline void add_session(nb::module_& module) {
  using namespace nb::literals;
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
}

}  // namespace binding
