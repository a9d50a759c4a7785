// The C API of personal memory.
#include <algorithm>

#include "api_words.hpp"
#include "personal_file.hpp"

#if !defined(MICRONET_WITHOUT_RECOLLECTIONS)

struct mn_personal {
  micronet::PersonalFile file;
};

namespace {

using namespace micronet;

constexpr double kStateShare = 0.3, kWordShare = 0.01;  // docs/results/open-vocabulary.md

std::shared_ptr<const Recollections> recalled(const PersonalFile& file) {
  Memories now = file.read();
  return std::make_shared<const Recollections>(file.model(), now.states.data(), now.following.data(),
                                               int64_t(now.following.size()), std::move(now.words), kStateShare, kWordShare);
}

}  // namespace

extern "C" {

mn_status mn_personal_open(const mn_model* model, const char* path, mn_personal** personal, mn_error* error) {
  return guarded(error, [&] {
    check(model && path && personal);
    *personal = new mn_personal{PersonalFile(*model->model, path)};
  });
}

void mn_personal_close(mn_personal* personal) { delete personal; }

mn_status mn_personal_learn(mn_personal* personal, const char* utf8, size_t size, uint64_t* tokens, mn_error* error) {
  return guarded(error, [&] {
    check(personal);
    const Text32 text = text_of(utf8, size);
    size_t count = 0;
    personal->file.change(
        [&](const Memories& before) { return learn_text(personal->file.model(), before, text, &count); });
    if (tokens) *tokens = count;
  });
}

mn_status mn_personal_words(const mn_personal* personal, mn_words** words, mn_error* error) {
  return guarded(error, [&] {
    check(personal && words);
    const Screen screen(personal->file.model());
    auto list = std::make_unique<mn_words>();
    for (const CountedWord& word : personal->file.read().words) {
      const std::string look = encode_utf8(screen.looks(decode_utf8(word.text)));
      const auto same = [&](const mn_words::Entry& entry) { return entry.text == look; };
      const auto known = std::find_if(list->entries.begin(), list->entries.end(), same);
      if (known == list->entries.end()) list->entries.push_back({look, look, double(word.count)});
      else known->number += double(word.count);
    }
    std::sort(list->entries.begin(), list->entries.end(), [](const mn_words::Entry& a, const mn_words::Entry& b) {
      return a.number != b.number ? a.number > b.number : a.text < b.text;
    });
    *words = list.release();
  });
}

mn_status mn_personal_merge(mn_personal* personal, const char* const* words, const size_t* sizes, const uint32_t* counts,
                            size_t count, mn_error* error) {
  return guarded(error, [&] {
    check(personal && ((words && counts) || !count));
    std::vector<CountedWord> given;
    for (size_t i = 0; i < count; ++i) {
      check(words[i]);
      const std::string_view word(words[i], sizes ? sizes[i] : std::strlen(words[i]));
      decode_utf8(word);  // throws if it is not UTF-8
      given.push_back({std::string(word), counts[i]});
    }
    personal->file.change([&](const Memories& before) { return learn_words(personal->file.model(), before, given); });
  });
}

mn_status mn_personal_forget(mn_personal* personal, const char* word, size_t size, int* found, mn_error* error) {
  return guarded(error, [&] {
    check(personal);
    const Text32 text = text_of(word, size);
    bool had = false;
    personal->file.change([&](const Memories& before) { return forget_word(personal->file.model(), before, text, &had); });
    if (found) *found = had;
  });
}

mn_status mn_personal_clear(mn_personal* personal, mn_error* error) {
  return guarded(error, [&] {
    check(personal);
    personal->file.change([](const Memories&) { return Memories(); });
  });
}

mn_status mn_text_recall(mn_text* text, const mn_personal* personal, mn_error* error) {
  return guarded(error, [&] {
    check(text);
    text->text.recall(personal ? recalled(personal->file) : nullptr);
  });
}

mn_status mn_text_forget(mn_text* text, const char* word, size_t size, mn_error* error) {
  return guarded(error, [&] {
    check(text);
    text->text.forget(forms_of(text->text.screen(), text_of(word, size)));
  });
}

}  // extern "C"

#endif
