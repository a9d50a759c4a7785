// The C API for text. No exception leaves it.
#include <cmath>

#include "api_words.hpp"

namespace {

using namespace micronet;

const Tokenizer& tokenizer_of(const char* name) {
  check(name);
  const Tokenizer* found = find_tokenizer(name);
  if (!found) fail(MN_ERROR_ARGUMENT, "there is no tokenizer '%.50s'; choose wikitext, word or word-2", name);
  return *found;
}

mn_words* listed(const Tokens& tokens) {
  auto list = std::make_unique<mn_words>();
  for (const Text32& token : tokens) list->entries.push_back({encode_utf8(token), encode_utf8(token), std::nan("")});
  return list.release();
}

mn_words* listed(const std::vector<Word>& words) {
  auto list = std::make_unique<mn_words>();
  for (const Word& word : words) list->entries.push_back({encode_utf8(word.text), encode_utf8(word.text), word.probability});
  return list.release();
}

mn_words* listed(const Suggestions& found) {
  std::unique_ptr<mn_words> list(listed(found.words));
  list->replaces = encode_utf8(found.replaces);
  return list.release();
}

const mn_words::Entry* entry(const mn_words* words, size_t place) {
  return words && place < words->entries.size() ? &words->entries[place] : nullptr;
}

const char* text_at(const std::string* text, size_t* size) {
  if (size) *size = text ? text->size() : 0;
  return text ? text->c_str() : nullptr;
}

}  // namespace

extern "C" {

mn_status mn_text_start(const mn_model* model, mn_text** text, mn_error* error) {
  return guarded(error, [&] {
    check(model && text);
    *text = new mn_text{Text(*model->model)};
  });
}

mn_status mn_text_read(const mn_model* model, const char* utf8, size_t size, mn_text** text, mn_error* error) {
  return guarded(error, [&] {
    check(model && text);
    *text = new mn_text{read_text(*model->model, text_of(utf8, size))};
  });
}

mn_status mn_text_fork(const mn_text* text, mn_text** copy, mn_error* error) {
  return guarded(error, [&] {
    check(text && copy);
    *copy = new mn_text{Text(text->text)};
  });
}

void mn_text_free(mn_text* text) { delete text; }

mn_status mn_text_feed(mn_text* text, const char* utf8, size_t size, mn_error* error) {
  return guarded(error, [&] {
    check(text);
    text->text.feed(View32(text_of(utf8, size)));
  });
}

mn_status mn_text_settle(mn_text* text, mn_error* error) {
  return guarded(error, [&] {
    check(text);
    text->text.settle();
  });
}

mn_status mn_text_tokens(const mn_text* text, uint64_t* tokens, mn_error* error) {
  return guarded(error, [&] {
    check(text && tokens);
    *tokens = uint64_t(text->text.tokens());
  });
}

mn_status mn_text_next(mn_text* text, int32_t k, mn_words** words, mn_error* error) {
  return guarded(error, [&] {
    check(text && words);
    *words = listed(text->text.next_words(k));
  });
}

mn_status mn_text_complete(mn_text* text, const char* prefix, size_t size, int32_t k, mn_words** words,
                           mn_error* error) {
  return guarded(error, [&] {
    check(text && words);
    *words = listed(text->text.complete(text_of(prefix, size), k));
  });
}

mn_status mn_text_suggest(mn_text* text, int32_t k, mn_words** words, mn_error* error) {
  return guarded(error, [&] {
    check(text && words);
    *words = listed(text->text.suggest(k));
  });
}

mn_status mn_session_next_words(mn_session* session, const char* before, size_t before_size, int32_t k,
                                mn_words** words, mn_error* error) {
  return guarded(error, [&] {
    check(session && words);
    const Screen screen(session->session.model());
    *words = listed(screen.next_words(session->session, text_of(before, before_size), k));
  });
}

mn_status mn_session_completions(mn_session* session, const char* before, size_t before_size, const char* prefix,
                                 size_t prefix_size, int32_t k, mn_words** words, mn_error* error) {
  return guarded(error, [&] {
    check(session && words);
    const Screen screen(session->session.model());
    *words = listed(
        screen.completions(session->session, text_of(before, before_size), text_of(prefix, prefix_size), k));
  });
}

mn_status mn_session_suggest(mn_session* session, const char* before, size_t before_size, const char* typed,
                             size_t typed_size, int spaced, int32_t k, mn_words** words, mn_error* error) {
  return guarded(error, [&] {
    check(session && words);
    Session& own = session->session;
    const Screen screen(own.model());
    const Text32 last = text_of(before, before_size), part = text_of(typed, typed_size);
    *words = listed(part.empty() ? suggest_next(screen, own, last, k, spaced != 0)
                                 : suggest_completions(screen, own, last, part, k, session->learned));
  });
}

mn_status mn_text_seed(mn_text* text, uint64_t seed, mn_error* error) {
  return guarded(error, [&] {
    check(text);
    text->text.seed(seed);
  });
}

mn_status mn_text_write(mn_text* text, double temperature, int32_t top_k, double top_p, mn_words** words,
                        mn_error* error) {
  return guarded(error, [&] {
    check(text && words);
    *words = listed(Tokens{text->text.write(temperature, top_k, top_p)});
  });
}

mn_status mn_text_save(const mn_text* text, void* bytes, size_t* size, mn_error* error) {
  return guarded(error, [&] {
    check(text && size);
    const std::string saved = text->text.save();
    if (bytes && *size < saved.size())
      fail(MN_ERROR_ARGUMENT, "the saved text needs a buffer of %zu bytes, got %zu", saved.size(), *size);
    if (bytes) std::memcpy(bytes, saved.data(), saved.size());
    *size = saved.size();
  });
}

mn_status mn_text_restore(const mn_model* model, const void* bytes, size_t size, mn_text** text, mn_error* error) {
  return guarded(error, [&] {
    check(model && (bytes || !size) && text);
    *text = new mn_text{Text::restore(*model->model, {static_cast<const uint8_t*>(bytes), size})};
  });
}

mn_status mn_model_score_text(const mn_model* model, const char* utf8, size_t size, int threads, mn_words** words,
                              mn_error* error) {
  return guarded(error, [&] {
    check(model && words);
    check_threads(threads);
    auto list = std::make_unique<mn_words>();
    for (const ScoredToken& token : score_text(*model->model, text_of(utf8, size), threads))
      list->entries.push_back({encode_utf8(token.token), encode_utf8(token.piece), double(token.log_probability)});
    *words = list.release();
  });
}

mn_status mn_tokens(const char* tokenizer, const char* utf8, size_t size, uint32_t after, mn_words** tokens,
                    mn_error* error) {
  return guarded(error, [&] {
    check(tokens);
    *tokens = listed(tokenizer_of(tokenizer).tokens(text_of(utf8, size), char32_t(after)));
  });
}

mn_status mn_join(const char* tokenizer, const char* const* tokens, const size_t* sizes, size_t count, mn_words** text,
                  mn_error* error) {
  return guarded(error, [&] {
    check((tokens || !count) && text);
    Tokens all;
    for (size_t i = 0; i < count; ++i) {
      check(tokens[i]);
      all.push_back(text_of(tokens[i], sizes ? sizes[i] : std::strlen(tokens[i])));
    }
    *text = listed(Tokens{tokenizer_of(tokenizer).join(all)});
  });
}

mn_status mn_settled(const char* tokenizer, const char* utf8, size_t size, size_t* settled, mn_error* error) {
  return guarded(error, [&] {
    check(settled);
    const Text32 text = text_of(utf8, size);
    *settled = encode_utf8(View32(text).substr(0, tokenizer_of(tokenizer).settled(text))).size();
  });
}

size_t mn_words_count(const mn_words* words) { return words ? words->entries.size() : 0; }

const char* mn_words_text(const mn_words* words, size_t place, size_t* size) {
  const mn_words::Entry* found = entry(words, place);
  return text_at(found ? &found->text : nullptr, size);
}

const char* mn_words_piece(const mn_words* words, size_t place, size_t* size) {
  const mn_words::Entry* found = entry(words, place);
  return text_at(found ? &found->piece : nullptr, size);
}

double mn_words_number(const mn_words* words, size_t place) {
  const mn_words::Entry* found = entry(words, place);
  return found ? found->number : std::nan("");
}

const char* mn_words_replaces(const mn_words* words, size_t* size) {
  return text_at(words ? &words->replaces : nullptr, size);
}

void mn_words_free(mn_words* words) { delete words; }

}  // extern "C"
