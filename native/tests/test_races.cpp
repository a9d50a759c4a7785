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
