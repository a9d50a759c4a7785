// Microseconds of processor time per token, on one thread: microbenchmark MODEL [KERNELS [TOKENS [ROUNDS]]]
// Prints the lowest tenth of the times, so that a busy machine disturbs little.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "micronet.h"

namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) * 1e6 + double(t.tv_nsec) * 1e-3;
}

double lowest_tenth(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 10];
}

void need(mn_status status, const mn_error& error) {
  if (status == MN_OK) return;
  std::fprintf(stderr, "microbenchmark: %s\n", error.message);
  std::exit(1);
}

// Return the time to read this many bytes once: a lower bound for every engine.
double read_once(size_t bytes) {
  std::vector<uint64_t> memory(bytes / 8, 1);
  std::vector<double> times;
  volatile uint64_t sink = 0;
  for (int round = 0; round < 50; ++round) {
    const double begin = now();
    uint64_t sums[8] = {};
    for (size_t i = 0; i + 8 <= memory.size(); i += 8)
      for (size_t j = 0; j < 8; ++j) sums[j] += memory[i + j];
    for (uint64_t sum : sums) sink = sink + sum;
    times.push_back(now() - begin);
  }
  return lowest_tenth(times);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: microbenchmark MODEL [KERNELS [TOKENS [ROUNDS]]]\n");
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
  for (int32_t& id : ids) {  // smaller ids are more frequent
    random = random * 1664525u + 1013904223u;
    const double u = double(random >> 8) / (1 << 24);
    id = int32_t(double(words) * u * u * u * u);
  }
  std::vector<float> out(static_cast<size_t>(words));
  std::printf("reading 8.3 MB once: %.0f us, 16.6 MB: %.0f us\n", read_once(8300000), read_once(16600000));
  need(mn_session_feed_many(session, ids.data(), tokens, &error), error);

  const int rounds = count > 4 ? std::atoi(arguments[4]) : 200;
  std::vector<double> feed, all, top;
  int32_t best[5];
  float scores[5];
  for (int i = 0; i < rounds; ++i) {
    double t0 = now();
    need(mn_session_feed(session, ids[size_t(i) % tokens], &error), error);
    double t1 = now();
    need(mn_session_log_distribution(session, out.data(), &error), error);
    double t2 = now();
    feed.push_back(t1 - t0);
    all.push_back(t2 - t1);
    need(mn_session_feed(session, ids[size_t(i + 1) % tokens], &error), error);
    t0 = now();
    need(mn_session_top_k(session, 5, best, scores, &error), error);
    top.push_back(now() - t0);
  }
  std::printf("a step to the full distribution: %.0f us (feed %.0f + distribution %.0f); to the top 5: %.0f us\n",
              lowest_tenth(feed) + lowest_tenth(all), lowest_tenth(feed), lowest_tenth(all), lowest_tenth(feed) + lowest_tenth(top));
  const double t0 = now();
  need(mn_model_score(model, ids.data(), tokens, 1, out.data(), &error), error);
  std::printf("scoring: %.0f us per token\n", (now() - t0) / double(tokens));
  mn_session_free(session);
  mn_model_close(model);
  return 0;
}
