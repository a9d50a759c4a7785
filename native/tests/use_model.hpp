// Calls every function of the C API on a model. Any result is fine, as long as nothing crashes.
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
    mn_influence influence;
    int64_t places[2];
    double parts[2];
    mn_session_influence(session, words - 1, 2, &influence, places, parts, &found, &error);
    // A word that the vocabulary lacks, and how it is spelled.
    double spelled = 0;
    mn_model_spelling(model, "wnew", 4, &spelled, &error);
    if (mn_session_add_word(session, "wnew", 4, &id, &error) == MN_OK) {
      for (const int32_t token : {id, words - 1, id}) mn_session_feed(session, token, &error);
      mn_session_top_k(session, words < 3 ? words : 3, best.data(), room.data(), &error);
      mn_session_complete(session, "w", 1, 2, best.data(), room.data(), &found, &error);
      mn_session_log_probability(session, id, &x, &error);
      mn_session_log_distribution(session, room.data(), &error);
      mn_session_sample(session, 0.999, 1.0, 0, 1.0, &id, &error);
      mn_session_word(session, id, &size);
      const int32_t open[] = {0, words, words - 1, words};
      float scores[3];
      mn_model_score_open(model, open, 4, &spelled, 1, 1, scores, &error);
    }
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
