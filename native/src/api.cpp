// The C API for word ids. No exception leaves it. The functions for text are in api_text.cpp.
#include <algorithm>

#include "api_guard.hpp"
#include "checksum.hpp"
#include "dispatch.hpp"
#include "saving.hpp"
#include "scoring.hpp"

namespace {

using namespace micronet;

void check_text(const mn_model* model, const int32_t* ids, size_t count) {
  check(ids || !count);
  if (count > kLargestMemory / sizeof(int32_t))
    fail(MN_ERROR_ARGUMENT, "a text of %zu words is too long; cut it into parts", count);
  for (size_t i = 0; i < count; ++i)
    if (ids[i] < 0 || ids[i] >= model->model->vocabulary.size())
      fail(MN_ERROR_ARGUMENT, "there is no word %d: choose ids from 0 to %d", ids[i], model->model->vocabulary.size() - 1);
}

}  // namespace

extern "C" {

size_t mn_kernel_sets(mn_kernel_set* sets, size_t room) {
  const Kernels* chosen = nullptr;
  guarded(nullptr, [&] { chosen = &choose_kernels("auto"); });  // fails if MICRONET_KERNELS names a set that cannot run
  size_t count = 0;
  for (const KernelSet& set : kernel_sets()) {
    const bool is_chosen = set.runs && set.kernels == chosen;
    if (sets && count < room) sets[count] = {set.name, 1, set.runs, is_chosen};
    ++count;
  }
  return count;
}

uint64_t mn_checksum(const void* bytes, size_t size) {
  return checksum({static_cast<const uint8_t*>(bytes), bytes ? size : 0});
}

mn_status mn_model_open(const char* path, const char* kernels, mn_model** model, mn_error* error) {
  return guarded(error, [&] {
    check(path && kernels && model);
    auto opened = std::make_unique<mn_model>();
    const Kernels& chosen = choose_kernels(kernels);
    opened->file = std::make_unique<FileMap>(path);
    const Bytes bytes = opened->file->bytes();
    opened->model = std::make_unique<Model>(bytes, chosen);
    // The weights are unpacked. Of the file only the words are still needed, unless they were prefix codes.
    const Bytes words = opened->model->words.size() ? bytes.part(0, 0) : opened->model->vocabulary.text();
    opened->file->release(bytes.part(0, size_t(words.data - bytes.data)));
    opened->file->release(bytes.part(size_t(words.data - bytes.data) + words.size, bytes.size));
    *model = opened.release();
  });
}

mn_status mn_model_open_bytes(const void* bytes, size_t size, const char* kernels, mn_model** model, mn_error* error) {
  return guarded(error, [&] {
    check((bytes || !size) && kernels && model);
    auto opened = std::make_unique<mn_model>();
    opened->model = std::make_unique<Model>(Bytes{static_cast<const uint8_t*>(bytes), size}, choose_kernels(kernels));
    *model = opened.release();
  });
}

void mn_model_close(mn_model* model) { delete model; }

int32_t mn_model_vocabulary_size(const mn_model* model) { return model->model->vocabulary.size(); }

const char* mn_model_metadata(const mn_model* model, size_t* size) {
  if (size) *size = model->model->metadata.size();
  return model->model->metadata.c_str();
}

uint64_t mn_model_checksum(const mn_model* model) { return model->model->fingerprint; }

const char* mn_model_kernels(const mn_model* model) { return model->model->kernels.name; }

const char* mn_model_word(const mn_model* model, int32_t id, size_t* size) {
  if (id < 0 || id >= model->model->vocabulary.size()) return nullptr;
  const std::string_view word = model->model->vocabulary.word(id);
  if (size) *size = word.size();
  return word.data();
}

int32_t mn_model_find(const mn_model* model, const char* word, size_t size) {
  return word ? model->model->vocabulary.find({word, size}) : -1;
}

int mn_model_has_spelling(const mn_model* model) { return model->model->spelling.there(); }

mn_status mn_model_spelling(const mn_model* model, const char* word, size_t size, double* log_probability,
                            mn_error* error) {
  return guarded(error, [&] {
    check(model && word && log_probability);
    const std::string_view given(word, size);
    if (!model->model->spelling.there())
      fail(MN_ERROR_ARGUMENT, "the file has no spelling model; pack it with the section spelling in its recipe");
    if (given.empty() || given.find('\n') != given.npos)
      fail(MN_ERROR_ARGUMENT, "a word to spell must not be empty or contain a line feed");
    if (given != "<unk>" && model->model->vocabulary.find(given) >= 0)
      fail(MN_ERROR_ARGUMENT, "the vocabulary has the word '%.*s': only other words are spelled",
           int(std::min<size_t>(size, 80)), word);
    *log_probability = model->model->spelling.log_probability(given);
  });
}

mn_status mn_model_score(const mn_model* model, const int32_t* ids, size_t count, int threads,
                         float* log_probabilities, mn_error* error) {
  return guarded(error, [&] {
    check(model && (log_probabilities || count < 2));
    check_threads(threads);
    check_text(model, ids, count);
    score(*model->model, ids, int64_t(count), threads, log_probabilities);
  });
}

mn_status mn_model_score_open(const mn_model* model, const int32_t* ids, size_t count, const double* log_spelled,
                              size_t added, int threads, float* log_probabilities, mn_error* error) {
  return guarded(error, [&] {
    check(model && (ids || !count) && (log_spelled || !added) && (log_probabilities || count < 2));
    check_threads(threads);
    const Vocabulary& vocabulary = model->model->vocabulary;
    const OpenText open{vocabulary.size(), vocabulary.find("<unk>"), log_spelled};
    if (added > size_t(AddedWords::kMost) || (added && open.unknown < 0))
      fail(MN_ERROR_ARGUMENT, "a text can have at most %d added words, of a model that knows <unk>", AddedWords::kMost);
    for (size_t i = 0; i < added; ++i)
      if (!(log_spelled[i] <= 0)) fail(MN_ERROR_ARGUMENT, "the spelling of added word %zu must be at most 0", i);
    for (size_t i = 0; i < count; ++i)
      if (ids[i] < 0 || ids[i] >= vocabulary.size() + int64_t(added))
        fail(MN_ERROR_ARGUMENT, "there is no word %d: choose ids from 0 to %lld", ids[i],
             static_cast<long long>(vocabulary.size() + int64_t(added) - 1));
    score(*model->model, ids, int64_t(count), threads, log_probabilities, &open);
  });
}

mn_status mn_model_score_batch(const mn_model* model, const int32_t* const* ids, const size_t* counts, size_t texts,
                               int threads, float* const* log_probabilities, mn_error* error) {
  return guarded(error, [&] {
    check(model && ((ids && counts && log_probabilities) || !texts));
    check_threads(threads);
    for (size_t i = 0; i < texts; ++i) {
      check_text(model, ids[i], counts[i]);
      check(log_probabilities[i] || counts[i] < 2);
    }
    score_batch(*model->model, ids, counts, int64_t(texts), threads, log_probabilities);
  });
}

mn_status mn_session_start(const mn_model* model, mn_session** session, mn_error* error) {
  return guarded(error, [&] {
    check(model && session);
    *session = new mn_session{Session(*model->model)};
  });
}

mn_status mn_session_fork(const mn_session* session, mn_session** copy, mn_error* error) {
  return guarded(error, [&] {
    check(session && copy);
    *copy = new mn_session{session->session, session->learned};
  });
}

void mn_session_free(mn_session* session) { delete session; }

mn_status mn_session_feed(mn_session* session, int32_t id, mn_error* error) {
  return mn_session_feed_many(session, &id, 1, error);
}

mn_status mn_session_feed_many(mn_session* session, const int32_t* ids, size_t count, mn_error* error) {
  return guarded(error, [&] {
    check(session && (ids || !count));
    session->session.feed(ids, int64_t(count));
  });
}

mn_status mn_session_add_word(mn_session* session, const char* word, size_t size, int32_t* id, mn_error* error) {
  return guarded(error, [&] {
    check(session && word && id);
    *id = session->session.added().add({word, size});
  });
}

int32_t mn_session_added(const mn_session* session) { return session->session.added().size(); }

const char* mn_session_word(const mn_session* session, int32_t id, size_t* size) {
  const Vocabulary& vocabulary = session->session.model().vocabulary;
  const AddedWords& added = session->session.added();
  if (id < 0 || id >= vocabulary.size() + added.size()) return nullptr;
  const std::string_view word = id < vocabulary.size() ? vocabulary.word(id) : std::string_view(added.word(id));
  if (size) *size = word.size();
  return word.data();
}

int32_t mn_session_find(const mn_session* session, const char* word, size_t size) {
  return word ? session->session.added().find({word, size}) : -1;
}

uint64_t mn_session_tokens(const mn_session* session) { return uint64_t(session->session.tokens()); }

mn_status mn_session_log_probability(mn_session* session, int32_t id, float* log_probability, mn_error* error) {
  return guarded(error, [&] {
    check(session && log_probability);
    *log_probability = session->session.log_probability(id);
  });
}

mn_status mn_session_log_distribution(mn_session* session, float* log_probabilities, mn_error* error) {
  return guarded(error, [&] {
    check(session && log_probabilities);
    session->session.log_distribution(log_probabilities);
  });
}

mn_status mn_session_influence(mn_session* session, int32_t id, int32_t k, mn_influence* influence, int64_t* places,
                               double* parts, int32_t* found, mn_error* error) {
  return guarded(error, [&] {
    check(session && influence && found && ((places && parts) || k <= 0));
    const Influence told = session->session.influence(id, k);
    *influence = {told.without_cache, told.share, told.cache};
    for (const Voter& voter : told.voters) {
      *places++ = voter.place;
      *parts++ = voter.part;
    }
    *found = int32_t(told.voters.size());
  });
}

mn_status mn_session_top_k(mn_session* session, int32_t k, int32_t* ids, float* log_probabilities, mn_error* error) {
  return guarded(error, [&] {
    check(session && ids && log_probabilities);
    for (const Candidate& candidate : session->session.top_k(k)) {
      *ids++ = candidate.id;
      *log_probabilities++ = candidate.log_probability;
    }
  });
}

mn_status mn_session_complete(mn_session* session, const char* prefix, size_t size, int32_t k, int32_t* ids,
                              float* log_probabilities, int32_t* found, mn_error* error) {
  return guarded(error, [&] {
    check(session && (prefix || !size) && ids && log_probabilities && found);
    const std::vector<Candidate> best = session->session.complete({prefix, size}, k);
    for (size_t i = 0; i < best.size(); ++i) {
      ids[i] = best[i].id;
      log_probabilities[i] = best[i].log_probability;
    }
    *found = int32_t(best.size());
  });
}

mn_status mn_session_sample(mn_session* session, double u, double temperature, int32_t top_k, double top_p,
                            int32_t* id, mn_error* error) {
  return guarded(error, [&] {
    check(session && id);
    *id = session->session.sample(u, temperature, top_k, top_p);
  });
}

mn_status mn_session_save(const mn_session* session, void* bytes, size_t* size, mn_error* error) {
  return guarded(error, [&] {
    check(session && size);
    const size_t needed = saved_size(session->session);
    if (bytes && *size < needed)
      fail(MN_ERROR_ARGUMENT, "the saved session needs a buffer of %zu bytes, got %zu", needed, *size);
    if (bytes) save(session->session, static_cast<uint8_t*>(bytes));
    *size = needed;
  });
}

mn_status mn_session_restore(const mn_model* model, const void* bytes, size_t size, mn_session** session,
                             mn_error* error) {
  return guarded(error, [&] {
    check(model && (bytes || !size) && session);
    *session = new mn_session{restore(*model->model, {static_cast<const uint8_t*>(bytes), size})};
  });
}

}  // extern "C"
