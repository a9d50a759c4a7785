// Threads that share a model: run under ThreadSanitizer (make native-test-threads).
#include <thread>
#include <vector>

#include "check.hpp"
#include "micronet.h"
#include "packed.hpp"

TEST(threads_share_a_model) {
  const auto bytes = packed::make({}).bytes();
  mn_model* model = nullptr;
  mn_error error;
  CHECK(mn_model_open_bytes(bytes.data(), bytes.size(), "auto", &model, &error) == MN_OK);
  std::vector<int32_t> ids(3000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = int32_t(i * 7 % 24);
  std::vector<float> expected(ids.size() - 1);
  CHECK(mn_model_score(model, ids.data(), ids.size(), 1, expected.data(), &error) == MN_OK);
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (size_t t = 0; t < good.size(); ++t)
    threads.emplace_back([&, t] {
      mn_error own;
      std::vector<float> numbers(expected.size());
      mn_session* session = nullptr;
      int32_t best[3];
      float three[3];
      bool fine = mn_session_start(model, &session, &own) == MN_OK;
      for (int i = 0; i < 20; ++i) {
        fine = fine && mn_session_feed(session, ids[size_t(i) + t], &own) == MN_OK;
        fine = fine && mn_session_top_k(session, 3, best, three, &own) == MN_OK;
      }
      mn_session_free(session);
      fine = fine && mn_model_score(model, ids.data(), ids.size(), 2, numbers.data(), &own) == MN_OK;
      const int32_t* texts[] = {ids.data(), ids.data() + 100};
      const size_t counts[] = {50, 60};
      std::vector<float> a(49), b(59);
      float* places[] = {a.data(), b.data()};
      fine = fine && mn_model_score_batch(model, texts, counts, 2, 2, places, &own) == MN_OK;
      good[t] = fine && numbers == expected;
    });
  for (std::thread& thread : threads) thread.join();
  for (int one : good) CHECK(one);
  mn_model_close(model);
}

TEST(threads_share_recollections) {
  packed::Options o;
  o.unknown = true;
  const auto bytes = packed::make(o).bytes();
  mn_model* model = nullptr;
  mn_error error;
  CHECK(mn_model_open_bytes(bytes.data(), bytes.size(), "auto", &model, &error) == MN_OK);
  const std::vector<uint16_t> states(size_t(3 * o.width), 0x3800);  // 0.5 everywhere
  const int32_t following[] = {1, int32_t(o.vocabulary), 2};
  const char* words[] = {"frob"};
  const size_t sizes[] = {4};
  const uint32_t counts[] = {3};
  mn_recollections* recollections = nullptr;
  CHECK(mn_recollections_new(model, states.data(), following, 3, words, sizes, counts, 1, 0.3, 0.2, &recollections,
                             &error) == MN_OK);
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> found(4);
  for (size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] {
      mn_error own;
      mn_session *session = nullptr, *fork = nullptr;
      int32_t best[3];
      float three[3];
      int32_t count = 0;
      found[t].resize(size_t(o.vocabulary));
      bool fine = mn_session_start(model, &session, &own) == MN_OK;
      fine = fine && mn_session_recall(session, recollections, &own) == MN_OK;
      for (int32_t id : {1, 5, 3, 2}) fine = fine && mn_session_feed(session, id, &own) == MN_OK;
      fine = fine && mn_session_fork(session, &fork, &own) == MN_OK;
      fine = fine && mn_session_complete(fork, "f", 1, 3, best, three, &count, &own) == MN_OK;
      fine = fine && mn_session_log_distribution(fork, found[t].data(), &own) == MN_OK;
      if (!fine) found[t].clear();
      mn_session_free(fork);
      mn_session_free(session);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(!found[0].empty());
  for (const std::vector<float>& one : found) CHECK(one == found[0]);
  mn_recollections_free(recollections);
  mn_model_close(model);
}
