// The text-level functions of the C API, for Python. Tests compare them with Python's own functions; other languages
// use them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "errors.hpp"
#include "micronet.h"

namespace binding {

namespace nb = nanobind;

struct CloseModel {
  void operator()(mn_model* model) const { mn_model_close(model); }
};
using ModelPointer = std::shared_ptr<mn_model>;

struct FreeWords {
  void operator()(mn_words* words) const { mn_words_free(words); }
};

// Call a function that gives words and return a list. call: mn_status(mn_words**, mn_error*);
// item: object(words, place).
template <class Call, class Item>
nb::list words_of(Call call, Item item) {
  mn_words* words = nullptr;
  ask([&](mn_error* e) { return call(&words, e); });
  const std::unique_ptr<mn_words, FreeWords> owner(words);
  nb::list list;
  for (size_t i = 0; i < mn_words_count(words); ++i) list.append(item(words, i));
  return list;
}

inline nb::str text_at(const char* (*get)(const mn_words*, size_t, size_t*), const mn_words* words, size_t place) {
  size_t size = 0;
  const char* text = get(words, place, &size);
  return nb::str(text, size);
}

inline nb::object with_number(const mn_words* words, size_t i) {
  return nb::make_tuple(text_at(mn_words_text, words, i), mn_words_number(words, i));
}

inline nb::object text_alone(const mn_words* words, size_t i) { return text_at(mn_words_text, words, i); }

struct ClosePersonal {
  void operator()(mn_personal* personal) const { mn_personal_close(personal); }
};

// A personal memory, through the functions that other languages use.
class Memory {
 public:
  Memory(ModelPointer model, const std::string& path) : model_(std::move(model)) {
    mn_personal* personal = nullptr;
    ask([&](mn_error* e) { return mn_personal_open(model_.get(), path.c_str(), &personal, e); });
    personal_.reset(personal);
  }
  uint64_t learn(const std::string& text) {
    uint64_t tokens = 0;
    ask([&](mn_error* e) { return mn_personal_learn(personal_.get(), text.data(), text.size(), &tokens, e); });
    return tokens;
  }
  nb::list words() const {
    return words_of([&](mn_words** w, mn_error* e) { return mn_personal_words(personal_.get(), w, e); }, with_number);
  }
  void merge(const std::vector<std::string>& words, const std::vector<uint32_t>& counts) {
    std::vector<const char*> texts;
    for (const std::string& word : words) texts.push_back(word.c_str());
    ask([&](mn_error* e) {
      return mn_personal_merge(personal_.get(), texts.data(), nullptr, counts.data(), std::min(texts.size(), counts.size()), e);
    });
  }
  bool forget(const std::string& word) {
    int found = 0;
    ask([&](mn_error* e) { return mn_personal_forget(personal_.get(), word.data(), word.size(), &found, e); });
    return found != 0;
  }
  void clear() {
    ask([&](mn_error* e) { return mn_personal_clear(personal_.get(), e); });
  }

 private:
  ModelPointer model_;  // outlives the memory
  std::unique_ptr<mn_personal, ClosePersonal> personal_;
};

// A text that is fed as text. Only one thread may use it.
class TextState {
 public:
  explicit TextState(ModelPointer model) : model_(std::move(model)) {
    mn_text* text = nullptr;
    ask([&](mn_error* e) { return mn_text_start(model_.get(), &text, e); });
    text_.reset(text);
  }
  TextState(ModelPointer model, const nb::bytes& saved) : model_(std::move(model)) {
    mn_text* text = nullptr;
    const void* data = saved.data();
    const size_t size = saved.size();
    ask([&](mn_error* e) { return mn_text_restore(model_.get(), data, size, &text, e); });
    text_.reset(text);
  }

  uint64_t tokens() const {
    uint64_t count = 0;
    ask([&](mn_error* e) { return mn_text_tokens(text_.get(), &count, e); });
    return count;
  }
  void feed(const std::string& text) {
    ask([&](mn_error* e) { return mn_text_feed(text_.get(), text.data(), text.size(), e); });
  }
  void settle() {
    ask([&](mn_error* e) { return mn_text_settle(text_.get(), e); });
  }
  nb::list top_k(int32_t k) {
    return words_of([&](mn_words** w, mn_error* e) { return mn_text_next(text_.get(), k, w, e); }, with_number);
  }
  nb::list complete(const std::string& prefix, int32_t k) {
    return words_of(
        [&](mn_words** w, mn_error* e) { return mn_text_complete(text_.get(), prefix.data(), prefix.size(), k, w, e); },
        with_number);
  }
  nb::object suggest(int32_t k) {
    std::string replaces;
    const auto call = [&](mn_words** w, mn_error* e) {
      const mn_status status = mn_text_suggest(text_.get(), k, w, e);
      if (status == MN_OK) replaces = mn_words_replaces(*w, nullptr);
      return status;
    };
    nb::list words = words_of(call, with_number);
    return nb::make_tuple(words, replaces);
  }
  void recall(const char* path) {
    mn_personal* personal = nullptr;
    ask([&](mn_error* e) { return mn_personal_open(model_.get(), path, &personal, e); });
    const std::unique_ptr<mn_personal, ClosePersonal> owner(personal);
    ask([&](mn_error* e) { return mn_text_recall(text_.get(), personal, e); });
  }
  void forget(const std::string& word) {
    ask([&](mn_error* e) { return mn_text_forget(text_.get(), word.data(), word.size(), e); });
  }
  void seed(uint64_t seed) {
    ask([&](mn_error* e) { return mn_text_seed(text_.get(), seed, e); });
  }
  nb::object write(double temperature, int32_t top_k, double top_p) {
    return words_of(
        [&](mn_words** w, mn_error* e) { return mn_text_write(text_.get(), temperature, top_k, top_p, w, e); },
        text_alone)[0];
  }
  nb::bytes save() const {
    size_t size = 0;
    ask([&](mn_error* e) { return mn_text_save(text_.get(), nullptr, &size, e); });
    std::string bytes(size, 0);
    ask([&](mn_error* e) { return mn_text_save(text_.get(), &bytes[0], &size, e); });
    return nb::bytes(bytes.data(), size);
  }

  struct Free {
    void operator()(mn_text* text) const { mn_text_free(text); }
  };

 private:
  ModelPointer model_;  // outlives the text
  std::unique_ptr<mn_text, Free> text_;
};

// Return suggestions for a text that is used once: the words, what they replace, and the number of tokens read.
inline nb::object suggest(const ModelPointer& model, std::string_view text, int32_t k) {
  std::string replaces;
  uint64_t tokens = 0;
  const auto call = [&](mn_words** words, mn_error* e) {
    mn_text* begun = nullptr;
    mn_status status = mn_text_start(model.get(), &begun, e);
    const std::unique_ptr<mn_text, TextState::Free> owner(begun);
    if (status == MN_OK) status = mn_text_feed(begun, text.data(), text.size(), e);
    if (status == MN_OK) status = mn_text_tokens(begun, &tokens, e);
    if (status == MN_OK) status = mn_text_suggest(begun, k, words, e);
    if (status == MN_OK) replaces = mn_words_replaces(*words, nullptr);
    return status;
  };
  nb::list words = words_of(call, with_number);
  return nb::make_tuple(words, replaces, tokens);
}

inline nb::list score_text(const ModelPointer& model, const std::string& text) {
  return words_of(
      [&](mn_words** w, mn_error* e) { return mn_model_score_text(model.get(), text.data(), text.size(), 1, w, e); },
      [](const mn_words* words, size_t i) -> nb::object {
        return nb::make_tuple(text_at(mn_words_text, words, i), text_at(mn_words_piece, words, i),
                              mn_words_number(words, i));
      });
}

inline nb::list tokens(const std::string& tokenizer, const std::string& text, uint32_t after) {
  return words_of(
      [&](mn_words** w, mn_error* e) { return mn_tokens(tokenizer.c_str(), text.data(), text.size(), after, w, e); },
      text_alone);
}

inline nb::object join(const std::string& tokenizer, const std::vector<std::string>& tokens) {
  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (const std::string& token : tokens) {
    texts.push_back(token.data());
    sizes.push_back(token.size());
  }
  return words_of(
      [&](mn_words** w, mn_error* e) { return mn_join(tokenizer.c_str(), texts.data(), sizes.data(), texts.size(), w, e); },
      text_alone)[0];
}

inline size_t settled(const std::string& tokenizer, const std::string& text) {
  size_t bytes = 0;
  ask([&](mn_error* e) { return mn_settled(tokenizer.c_str(), text.data(), text.size(), &bytes, e); });
  return bytes;
}

inline void add_text(nb::module_& module) {
  using namespace nb::literals;
  module.def("tokens", &tokens, "tokenizer"_a, "text"_a, "after"_a, "The tokens of a text behind a character's number.");
  module.def("join", &join, "tokenizer"_a, "tokens"_a, "Tokens put together to text.");
  module.def("settled", &settled, "tokenizer"_a, "text"_a, "How many bytes have the same tokens whatever follows.");
  nb::class_<Memory>(module, "Memory", "A person's memory; see runtime/personal.py.")
      .def("learn", &Memory::learn, "text"_a, "Learn a text.")
      .def("words", &Memory::words, "The words and their counts.")
      .def("merge", &Memory::merge, "words"_a, "counts"_a, "Add words of another memory.")
      .def("forget", &Memory::forget, "word"_a, "Forget a word.")
      .def("clear", &Memory::clear, "Forget everything.");
  nb::class_<TextState>(module, "Text", "A text that is fed as text; see runtime/state.py.")
      .def_prop_ro("tokens", &TextState::tokens, "How many tokens were read.")
      .def("feed", &TextState::feed, "text"_a, "Read more text.")
      .def("settle", &TextState::settle, "Take the last word for whole.")
      .def("top_k", &TextState::top_k, "k"_a, "The k likeliest words.")
      .def("complete", &TextState::complete, "prefix"_a, "k"_a, "Those that begin with a prefix.")
      .def("suggest", &TextState::suggest, "k"_a, "Words for someone who types, and what of the text they replace.")
      .def("recall", &TextState::recall, "path"_a, "Recall what a personal memory has now.")
      .def("forget", &TextState::forget, "word"_a, "Forget a word that the text has learned.")
      .def("seed", &TextState::seed, "seed"_a, "Choose the random numbers of `write`.")
      .def("write", &TextState::write, "temperature"_a, "top_k"_a, "top_p"_a, "Choose and read a word.")
      .def("save", &TextState::save, "All of it as bytes.");
}

}  // namespace binding
