// Words for someone who types, from C++: suggest MODEL TEXT
#include <micronet.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace {

// What the C API makes is freed with its owner; errors become exceptions.
using Model = std::unique_ptr<mn_model, decltype(&mn_model_close)>;
using Text = std::unique_ptr<mn_text, decltype(&mn_text_free)>;
using Words = std::unique_ptr<mn_words, decltype(&mn_words_free)>;

template <class T, class Call>
T* made(Call call) {
  T* thing = nullptr;
  mn_error error;
  if (call(&thing, &error) != MN_OK) throw std::runtime_error(error.message);
  return thing;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 3) {
    std::fputs("usage: suggest MODEL TEXT\n", stderr);
    return 2;
  }
  const Model model(made<mn_model>([&](auto to, auto e) { return mn_model_open(arguments[1], "auto", to, e); }), mn_model_close);
  const Text text(made<mn_text>([&](auto to, auto e) { return mn_text_start(model.get(), to, e); }), mn_text_free);
  mn_error error;
  if (mn_text_feed(text.get(), arguments[2], std::strlen(arguments[2]), &error) != MN_OK) throw std::runtime_error(error.message);
  const Words words(made<mn_words>([&](auto to, auto e) { return mn_text_suggest(text.get(), 3, to, e); }), mn_words_free);
  for (size_t i = 0; i < mn_words_count(words.get()); ++i) std::printf("%s\n", mn_words_text(words.get(), i, nullptr));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "suggest: %s\n", error.what());
  return 1;
}
