// Microseconds a token, on one thread: microbenchmark MODEL [KERNELS [TOKENS]]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "micronet.h"

namespace {

double now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void need(mn_status status, const mn_error& error) {
  if (status == MN_OK) return;
  std::fprintf(stderr, "microbenchmark: %s\n", error.message);
  std::exit(1);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: microbenchmark MODEL [KERNELS [TOKENS]]\n");
    return 2;
  }
  mn_error error;
  mn_model* model = nullptr;
  const double begin = now();
  need(mn_model_open(arguments[1], count > 2 ? arguments[2] : "auto", &model, &error), error);
  std::printf("%s: open %.1f ms\n", mn_model_kernels(model), (now() - begin) / 1000);
  mn_session* session = nullptr;
  need(mn_session_start(model, &session, &error), error);
  const int32_t words = mn_model_vocabulary_size(model);
  const size_t tokens = count > 3 ? size_t(std::atoi(arguments[3])) : 3200;
  std::vector<int32_t> ids(tokens);
  uint32_t random = 1;
  for (int32_t& id : ids) {  // the likelier, the smaller the id
    random = random * 1664525u + 1013904223u;
    const double u = double(random >> 8) / (1 << 24);
    id = int32_t(double(words) * u * u * u * u);
  }
  std::vector<float> out(static_cast<size_t>(words));
  need(mn_session_feed_many(session, ids.data(), tokens, &error), error);

  const int rounds = 200;
  double feed = 0, all = 0, top = 0;
  int32_t best[5];
  float scores[5];
  for (int i = 0; i < rounds; ++i) {
    double t0 = now();
    need(mn_session_feed(session, ids[size_t(i)], &error), error);
    double t1 = now();
    need(mn_session_log_distribution(session, out.data(), &error), error);
    double t2 = now();
    feed += t1 - t0;
    all += t2 - t1;
    need(mn_session_feed(session, ids[size_t(i) + 1], &error), error);
    t0 = now();
    need(mn_session_top_k(session, 5, best, scores, &error), error);
    top += now() - t0;
  }
  std::printf("a step to the full distribution: %.0f us (feed %.0f + distribution %.0f); to the top 5: %.0f us\n",
              (feed + all) / rounds, feed / rounds, all / rounds, (feed + top) / rounds);
  const double t0 = now();
  need(mn_model_score(model, ids.data(), tokens, 1, out.data(), &error), error);
  std::printf("scoring: %.0f us a token\n", (now() - t0) / double(tokens));
  mn_session_free(session);
  mn_model_close(model);
  return 0;
}
