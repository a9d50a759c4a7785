// Asks a model everything that the C API offers; whatever it answers is fine, as long as it answers.
#pragma once

#include <cstdint>
#include <vector>

#include "micronet.h"

inline void use_model(const mn_model* model) {
  mn_error error;
  const int32_t words = mn_model_vocabulary_size(model);
  size_t size = 0;
  for (int32_t id : {0, words - 1})
    if (const char* word = mn_model_word(model, id, &size)) mn_model_find(model, word, size);
  mn_model_metadata(model, &size);
  mn_session* session = nullptr;
  if (mn_session_start(model, &session, &error) != MN_OK) return;
  const int32_t ids[] = {0, words - 1, words / 2, 1 % words, 0, words / 3, words - 1};
  std::vector<float> room(static_cast<size_t>(words));
  std::vector<int32_t> best(room.size());
  bool fed = true;
  for (int32_t id : ids) fed = fed && mn_session_feed(session, id, &error) == MN_OK;
  fed = fed && mn_session_feed_many(session, ids, 7, &error) == MN_OK;
  if (fed) {
    int32_t found = 0, id = 0;
    float x = 0;
    mn_session_top_k(session, words < 3 ? words : 3, best.data(), room.data(), &error);
    mn_session_log_probability(session, words - 1, &x, &error);
    mn_session_log_distribution(session, room.data(), &error);
    mn_session_complete(session, "w", 1, 2, best.data(), room.data(), &found, &error);
    mn_session_sample(session, 0.7, 0.9, 0, 1.0, &id, &error);
    mn_session_sample(session, 0.3, 1.5, 2, 0.8, &id, &error);
    mn_session *copy = nullptr, *restored = nullptr;
    if (mn_session_fork(session, &copy, &error) == MN_OK) mn_session_feed(copy, 0, &error);
    if (mn_session_save(session, nullptr, &size, &error) == MN_OK) {
      std::vector<uint8_t> saved(size);
      mn_session_save(session, saved.data(), &size, &error);
      if (mn_session_restore(model, saved.data(), size, &restored, &error) == MN_OK) mn_session_feed(restored, 0, &error);
    }
    mn_session_free(copy);
    mn_session_free(restored);
    float scores[6];
    mn_model_score(model, ids, 7, 1, scores, &error);
  }
  mn_session_free(session);
}
