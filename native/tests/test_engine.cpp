// Sessions and scores through the C API: all ways to compute the same number must agree.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "bytes.hpp"
#include "check.hpp"
#include "micronet.h"
#include "packed.hpp"

namespace {

struct Close {
  void operator()(mn_model* m) const { mn_model_close(m); }
  void operator()(mn_session* s) const { mn_session_free(s); }
};
using Model = std::unique_ptr<mn_model, Close>;
using Session = std::unique_ptr<mn_session, Close>;

Model open(const std::vector<uint8_t>& bytes, const char* kernels = "auto") {
  mn_model* model = nullptr;
  mn_error error;
  if (mn_model_open_bytes(bytes.data(), bytes.size(), kernels, &model, &error) != MN_OK)
    std::fprintf(stderr, "%s\n", error.message);
  CHECK(model);
  return Model(model);
}

Session start(const Model& model) {
  mn_session* session = nullptr;
  CHECK(mn_session_start(model.get(), &session, nullptr) == MN_OK);
  return Session(session);
}

std::vector<packed::Options> kinds() {
  std::vector<packed::Options> all;
  for (int bits : {4, 8, 9, 16, 32})
    for (int kind = 0; kind < 4; ++kind) {
      packed::Options o;
      o.bits = bits;
      o.activation_bits = kind == 1 || bits == 32 ? 0 : bits;
      o.cache = kind == 2 ? 0 : 5;
      o.sparse = kind != 3;
      o.row_scales = kind == 3;
      o.position_bits = kind == 3 ? bits : 32;
      o.projected = kind == 3;
      o.context = kind == 2 ? 30 : 4;
      if (kind == 2) o.cutoffs = {}, o.embedding_widths = {5};
      all.push_back(o);
    }
  // Rows wider than a group of 9-bit weights, bins of several blocks of words, more heads than are computed at once.
  for (int bits : {8, 9}) {
    packed::Options o;
    o.vocabulary = 2600;
    o.cutoffs = {40, 300};
    o.embedding_widths = {37, 16, 4};
    o.width = 37;
    o.heads = 5;
    o.ffn_width = 50;
    o.cache = 20;
    o.bits = o.activation_bits = bits;
    all.push_back(o);
    o.ngrams = true;
    all.push_back(o);
  }
  packed::Options floats;
  floats.bits = 32;
  floats.activation_bits = floats.cache = 0;
  floats.ngrams = true;
  all.push_back(floats);
  return all;
}

// Call `body` with a model of each kind, opened with each kernel set that runs here.
template <class Body>
void each_kind(Body body) {
  for (const packed::Options& options : kinds()) {
    const auto bytes = packed::make(options).bytes();
    for (const char* kernels : check::kernels()) body(open(bytes, kernels));
  }
}

std::vector<int32_t> text(size_t count, int32_t vocabulary) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(int32_t((i * i * 7 + i / 3) % size_t(vocabulary)));
  return ids;
}

std::vector<float> distribution(const Session& session, int32_t words) {
  std::vector<float> out(static_cast<size_t>(words));
  CHECK(mn_session_log_distribution(session.get(), out.data(), nullptr) == MN_OK);
  return out;
}

std::vector<uint8_t> saved(const Session& session) {
  size_t size = 0;
  CHECK(mn_session_save(session.get(), nullptr, &size, nullptr) == MN_OK);
  std::vector<uint8_t> bytes(size);
  CHECK(mn_session_save(session.get(), bytes.data(), &size, nullptr) == MN_OK);
  return bytes;
}

}  // namespace

TEST(probabilities_sum_to_one_and_scores_are_those_of_steps) {
  each_kind([](const Model& model) {
    const int32_t words = mn_model_vocabulary_size(model.get());
    const auto ids = text(40, words);
    std::vector<float> scores(ids.size() - 1);
    CHECK(mn_model_score(model.get(), ids.data(), ids.size(), 1, scores.data(), nullptr) == MN_OK);
    const Session session = start(model);
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      CHECK(mn_session_feed(session.get(), ids[i], nullptr) == MN_OK);
      const auto all = distribution(session, words);
      double sum = 0;
      for (float x : all) sum += std::exp(double(x));
      CHECK(std::fabs(sum - 1) < 1e-5);
      float one = 0;
      CHECK(mn_session_log_probability(session.get(), ids[i + 1], &one, nullptr) == MN_OK);
      CHECK(one == all[size_t(ids[i + 1])]);
      CHECK(std::fabs(one - scores[i]) < 2e-6 * std::max(1.0, double(std::fabs(one)) / 8));  // a few last bits
    }
  });
}

TEST(threads_change_nothing) {
  packed::Options options;
  options.vocabulary = 60;
  options.cache = 700;  // several blocks of states
  for (int kind = 0; kind < 2 * int(check::kernels().size()); ++kind) {
    options.bits = kind % 2 ? 32 : 9;
    options.activation_bits = kind % 2 ? 0 : 9;
    const auto bytes = packed::make(options).bytes();
    const Model model = open(bytes, check::kernels()[size_t(kind / 2)]);
    const auto ids = text(1500, 60);
    std::vector<float> one(ids.size() - 1), many(one.size());
    CHECK(mn_model_score(model.get(), ids.data(), ids.size(), 1, one.data(), nullptr) == MN_OK);
    for (int threads : {2, 3, 7}) {
      CHECK(mn_model_score(model.get(), ids.data(), ids.size(), threads, many.data(), nullptr) == MN_OK);
      CHECK(many == one);
    }
    std::vector<const int32_t*> texts = {ids.data(), ids.data() + 1, ids.data(), ids.data() + 7};
    std::vector<size_t> counts = {ids.size(), 100, 2, 50};
    std::vector<std::vector<float>> batch, again;
    for (size_t count : counts) batch.emplace_back(count - 1);
    again = batch;
    auto places = [](std::vector<std::vector<float>>& rows) {
      std::vector<float*> found;
      for (auto& row : rows) found.push_back(row.data());
      return found;
    };
    CHECK(mn_model_score_batch(model.get(), texts.data(), counts.data(), 4, 1, places(batch).data(), nullptr) == MN_OK);
    CHECK(mn_model_score_batch(model.get(), texts.data(), counts.data(), 4, 3, places(again).data(), nullptr) == MN_OK);
    CHECK(batch == again);
    CHECK(batch[0] == one);
  }
}

TEST(all_kernels_agree) {
  for (const packed::Options& options : kinds()) {
    const auto bytes = packed::make(options).bytes();
    const Model plain = open(bytes, "scalar");
    const int32_t words = mn_model_vocabulary_size(plain.get());
    const auto ids = text(30, words);
    std::vector<float> wanted(ids.size() - 1), got(wanted.size());
    CHECK(mn_model_score(plain.get(), ids.data(), ids.size(), 1, wanted.data(), nullptr) == MN_OK);
    const Session reader = start(plain);
    CHECK(mn_session_feed_many(reader.get(), ids.data(), ids.size(), nullptr) == MN_OK);
    const auto all = distribution(reader, words);
    const auto state = saved(reader);
    for (const char* kernels : check::kernels()) {
      const Model model = open(bytes, kernels);
      CHECK(std::strcmp(mn_model_kernels(model.get()), kernels) == 0);
      CHECK(mn_model_score(model.get(), ids.data(), ids.size(), 1, got.data(), nullptr) == MN_OK);
      for (size_t i = 0; i < got.size(); ++i) CHECK(std::fabs(got[i] - wanted[i]) < 1e-5);
      const Session session = start(model);
      for (int32_t id : ids) CHECK(mn_session_feed(session.get(), id, nullptr) == MN_OK);
      const auto same = distribution(session, words);
      for (size_t i = 0; i < all.size(); ++i) CHECK(std::fabs(all[i] - same[i]) < 1e-5);
      // Up to the last quantizer everything is rounded once (docs/arithmetic.md), so a session's state is the same.
      if (options.activation_bits) CHECK(saved(session) == state);
    }
  }
}

TEST(top_k_is_the_sorted_distribution) {
  each_kind([](const Model& model) {
    const int32_t words = mn_model_vocabulary_size(model.get());
    const Session session = start(model);
    for (int32_t id : text(20, words)) {
      CHECK(mn_session_feed(session.get(), id, nullptr) == MN_OK);
      for (int32_t k : {1, 3, words}) {
        std::vector<int32_t> ids(static_cast<size_t>(k));
        std::vector<float> values(ids.size());
        CHECK(mn_session_top_k(session.get(), k, ids.data(), values.data(), nullptr) == MN_OK);
        const auto all = distribution(session, words);
        std::vector<int32_t> order;
        for (int32_t i = 0; i < words; ++i) order.push_back(i);
        std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
          return all[size_t(a)] != all[size_t(b)] ? all[size_t(a)] > all[size_t(b)] : a < b;
        });
        for (size_t i = 0; i < ids.size(); ++i) CHECK(ids[i] == order[i] && values[i] == all[size_t(order[i])]);
      }
      std::vector<int32_t> ids(4);
      std::vector<float> values(4);
      int32_t found = 0;
      CHECK(mn_session_complete(session.get(), "w1", 2, 4, ids.data(), values.data(), &found, nullptr) == MN_OK);
      CHECK(found == 4);
      for (size_t i = 0; i < 4; ++i) {
        size_t size = 0;
        const char* word = mn_model_word(model.get(), ids[i], &size);
        CHECK(size > 1 && word[0] == 'w' && word[1] == '1');
        CHECK(i == 0 || values[i] <= values[i - 1]);
      }
      CHECK(mn_session_complete(session.get(), "nothing", 7, 4, ids.data(), values.data(), &found, nullptr) == MN_OK);
      CHECK(found == 0);
    }
  });
}

TEST(forks_and_saved_sessions_continue_alike) {
  each_kind([](const Model& model) {
    const int32_t words = mn_model_vocabulary_size(model.get());
    const auto ids = text(60, words);
    for (size_t cut : {size_t(0), size_t(1), size_t(5), size_t(40)}) {
      const Session session = start(model);
      CHECK(mn_session_feed_many(session.get(), ids.data(), cut, nullptr) == MN_OK);
      mn_session *forked = nullptr, *restored = nullptr;
      CHECK(mn_session_fork(session.get(), &forked, nullptr) == MN_OK);
      size_t size = 0;
      CHECK(mn_session_save(session.get(), nullptr, &size, nullptr) == MN_OK);
      std::vector<uint8_t> room(size);
      size_t little = size - 1;
      CHECK(mn_session_save(session.get(), room.data(), &little, nullptr) == MN_ERROR_ARGUMENT);
      CHECK(mn_session_save(session.get(), room.data(), &size, nullptr) == MN_OK);
      CHECK(mn_session_restore(model.get(), room.data(), size, &restored, nullptr) == MN_OK);
      const Session fork(forked), again(restored);
      CHECK(mn_session_tokens(again.get()) == cut);
      if (cut) CHECK(distribution(again, words) == distribution(session, words));
      for (const Session* each : {&session, &fork, &again})
        CHECK(mn_session_feed_many(each->get(), ids.data() + cut, ids.size() - cut, nullptr) == MN_OK);
      CHECK(distribution(fork, words) == distribution(session, words));
      CHECK(distribution(again, words) == distribution(session, words));
    }
  });
}

static void check_saved(const Model& model) {
  const Session session = start(model);
  const auto ids = text(20, 24);
  CHECK(mn_session_feed_many(session.get(), ids.data(), ids.size(), nullptr) == MN_OK);
  const std::vector<uint8_t> whole = saved(session);
  const size_t size = whole.size();
  mn_session* restored = nullptr;
  for (size_t cut = 0; cut < size; ++cut)
    CHECK(mn_session_restore(model.get(), std::vector<uint8_t>(whole.begin(), whole.begin() + long(cut)).data(), cut,
                             &restored, nullptr) == MN_ERROR_FORMAT);
  for (size_t i = 0; i < size; ++i) {
    std::vector<uint8_t> spoiled = whole;
    spoiled[i] ^= uint8_t(1 << i % 8);
    CHECK(mn_session_restore(model.get(), spoiled.data(), size, &restored, nullptr) == MN_ERROR_FORMAT);
    // With the right hash it may be accepted or refused, but nothing may crash.
    const uint64_t hash = micronet::hash_bytes({spoiled.data(), size - 8});
    std::memcpy(spoiled.data() + size - 8, &hash, 8);
    if (mn_session_restore(model.get(), spoiled.data(), size, &restored, nullptr) == MN_OK) {
      const Session again(restored);
      float x;
      CHECK(mn_session_feed(again.get(), 3, nullptr) == MN_OK);
      CHECK(mn_session_log_probability(again.get(), 20, &x, nullptr) == MN_OK);
    }
  }
}

TEST(saved_sessions_are_checked) {
  const auto bytes = packed::make({}).bytes();
  for (const char* kernels : check::kernels()) check_saved(open(bytes, kernels));
}

static void check_samples(const Model& model) {
  const Session session = start(model);
  CHECK(mn_session_feed(session.get(), 5, nullptr) == MN_OK);
  const auto all = distribution(session, 24);
  for (double temperature : {1.0, 0.5, 3.0})
    for (int32_t top_k : {0, 1, 7, 100})
      for (double top_p : {1.0, 0.6, 0.01}) {
        std::vector<int32_t> order;
        for (int32_t i = 0; i < 24; ++i) order.push_back(i);
        std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return all[size_t(a)] > all[size_t(b)]; });
        if (top_k && top_k < 24) order.resize(size_t(top_k));
        auto weight = [&](int32_t id) { return std::exp(double(all[size_t(id)]) / temperature); };
        double total = 0, sum = 0;
        for (int32_t id : order) total += weight(id);
        size_t kept = 0;
        while (kept < order.size() && (kept == 0 || sum < top_p * total)) sum += weight(order[kept++]);
        order.resize(kept);
        std::sort(order.begin(), order.end());
        double below = 0;
        for (int32_t id : order) {
          int32_t got = -1;
          const double middle = (below + weight(id) / 2) / sum;
          CHECK(mn_session_sample(session.get(), middle, temperature, top_k, top_p, &got, nullptr) == MN_OK);
          CHECK(got == id);
          below += weight(id);
        }
      }
  int32_t id;
  for (double u : {-0.1, 1.0, double(NAN)})
    CHECK(mn_session_sample(session.get(), u, 1, 0, 1, &id, nullptr) == MN_ERROR_ARGUMENT);
  CHECK(mn_session_sample(session.get(), 0.5, 0, 0, 1, &id, nullptr) == MN_ERROR_ARGUMENT);
  CHECK(mn_session_sample(session.get(), 0.5, 1, -1, 1, &id, nullptr) == MN_ERROR_ARGUMENT);
  CHECK(mn_session_sample(session.get(), 0.5, 1, 0, 0, &id, nullptr) == MN_ERROR_ARGUMENT);
}

TEST(samples_follow_the_distribution) {
  const auto bytes = packed::make({}).bytes();
  for (const char* kernels : check::kernels()) check_samples(open(bytes, kernels));
}

TEST(wrong_questions_are_refused_in_a_sentence) {
  const auto bytes = packed::make({}).bytes();
  const Model model = open(bytes);
  const Session session = start(model);
  mn_error error;
  float x[24];
  int32_t ids[24];
  CHECK(mn_session_log_distribution(session.get(), x, &error) == MN_ERROR_STATE && std::strlen(error.message) > 20);
  CHECK(mn_session_feed(session.get(), 24, &error) == MN_ERROR_ARGUMENT && std::strstr(error.message, "0 to 23"));
  CHECK(mn_session_feed(session.get(), -1, &error) == MN_ERROR_ARGUMENT);
  CHECK(mn_session_tokens(session.get()) == 0);
  CHECK(mn_session_feed(session.get(), 1, &error) == MN_OK && error.message[0] == 0);
  CHECK(mn_session_top_k(session.get(), 0, ids, x, &error) == MN_ERROR_ARGUMENT);
  CHECK(mn_session_top_k(session.get(), 25, ids, x, &error) == MN_ERROR_ARGUMENT);
  CHECK(mn_session_log_probability(session.get(), 24, x, &error) == MN_ERROR_ARGUMENT);
  CHECK(mn_model_score(model.get(), ids, 3, 0, x, &error) == MN_ERROR_ARGUMENT);
  mn_model* none = nullptr;
  CHECK(mn_model_open_bytes(bytes.data(), bytes.size(), "mmx", &none, &error) == MN_ERROR_ARGUMENT);
  CHECK(mn_model_open("/nowhere/at/all", "auto", &none, &error) == MN_ERROR_FILE);
  CHECK(mn_model_open("/", "auto", &none, &error) == MN_ERROR_FILE);
  CHECK(mn_model_open(nullptr, "auto", &none, &error) == MN_ERROR_ARGUMENT);
  CHECK(none == nullptr);
  CHECK(mn_model_word(model.get(), 24, nullptr) == nullptr);
  CHECK(mn_model_find(model.get(), "w1", 2) == 1 && mn_model_find(model.get(), "w", 1) == -1);
}
