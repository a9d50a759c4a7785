// The C API: no exception leaves it.
#include <cstdio>
#include <memory>
#include <new>

#include "dispatch.hpp"
#include "micronet.h"
#include "saving.hpp"
#include "scoring.hpp"
#include "session.hpp"
#include "status.hpp"

struct mn_model {
  std::unique_ptr<micronet::FileMap> file;  // null for a file in memory
  std::unique_ptr<micronet::Model> model;
};

struct mn_session {
  micronet::Session session;
};

namespace {

using namespace micronet;

// Runs `body` and turns exceptions into a status and a message.
template <class Body>
mn_status guarded(mn_error* error, Body body) noexcept {
  mn_error local;
  mn_error& to = error ? *error : local;
  try {
    body();
    to.status = MN_OK;
    to.message[0] = 0;
  } catch (const Failure& failure) {
    to = failure.error();
  } catch (const std::bad_alloc&) {
    to.status = MN_ERROR_MEMORY;
    std::snprintf(to.message, sizeof to.message, "there is not enough memory; close other models or take a smaller one");
  } catch (const std::exception& other) {
    to.status = MN_ERROR_MEMORY;
    std::snprintf(to.message, sizeof to.message, "the system refused a request of the engine: %.300s", other.what());
  } catch (...) {
    to.status = MN_ERROR_MEMORY;
    std::snprintf(to.message, sizeof to.message, "the system refused a request of the engine");
  }
  return to.status;
}

void check(bool given) {
  if (!given) fail(MN_ERROR_ARGUMENT, "a required pointer is NULL");
}

void check_text(const mn_model* model, const int32_t* ids, size_t count) {
  check(ids || !count);
  if (count > size_t{1} << 40) fail(MN_ERROR_ARGUMENT, "a text of %zu words is too long; cut it into parts", count);
  for (size_t i = 0; i < count; ++i)
    if (ids[i] < 0 || ids[i] >= model->model->vocabulary.size())
      fail(MN_ERROR_ARGUMENT, "there is no word %d: choose ids from 0 to %d", ids[i], model->model->vocabulary.size() - 1);
}

void check_threads(int threads) {
  if (threads < 1 || threads > 1024) fail(MN_ERROR_ARGUMENT, "threads must be 1 to 1024, got %d", threads);
}

}  // namespace

extern "C" {

size_t mn_kernel_sets(mn_kernel_set* sets, size_t room) {
  const Kernels* chosen = nullptr;
  guarded(nullptr, [&] { chosen = &choose_kernels("auto"); });  // fails where the variable names none
  size_t count = 0;
  for (const KernelSet& set : kernel_sets()) {
    const bool is_chosen = set.runs && set.kernels == chosen;
    if (sets && count < room) sets[count] = {set.name, set.kernels != nullptr, set.runs, is_chosen};
    ++count;
  }
  return count;
}

mn_status mn_model_open(const char* path, const char* kernels, mn_model** model, mn_error* error) {
  return guarded(error, [&] {
    check(path && kernels && model);
    auto opened = std::make_unique<mn_model>();
    const Kernels& chosen = choose_kernels(kernels);
    opened->file = std::make_unique<FileMap>(path);
    const Bytes bytes = opened->file->bytes();
    opened->model = std::make_unique<Model>(bytes, chosen);
    // The weights are unpacked; of the file only the words are still needed.
    const Bytes words = opened->model->vocabulary.text();
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

mn_status mn_model_score(const mn_model* model, const int32_t* ids, size_t count, int threads,
                         float* log_probabilities, mn_error* error) {
  return guarded(error, [&] {
    check(model && (log_probabilities || count < 2));
    check_threads(threads);
    check_text(model, ids, count);
    score(*model->model, ids, int64_t(count), threads, log_probabilities);
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
    *copy = new mn_session{session->session};
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
