// Recollections through the C API: probabilities sum to 1, forks recall, saved sessions do not, words are forgotten.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "micronet.h"
#include "packed.hpp"
#include "recollections.hpp"

namespace {

constexpr int32_t kKnown = 9, kWidth = 4;

packed::Options shape(int bits) {
  packed::Options o;
  o.layers = 1;
  o.vocabulary = kKnown;
  o.cutoffs = {4, 6};
  o.embedding_widths = {4, 2, 1};
  o.width = kWidth;
  o.ffn_width = 5;
  o.bits = bits;
  o.activation_bits = bits == 32 ? 0 : bits;
  o.cache = 6;
  o.unknown = true;
  return o;
}

double sum(mn_session* session) {
  float known[kKnown];
  CHECK(mn_session_log_distribution(session, known, nullptr) == MN_OK);
  double total = 0;
  for (const float x : known) total += std::exp(double(x));
  for (int32_t id = kKnown; id < kKnown + mn_session_added(session); ++id) {
    float x = 0;
    CHECK(mn_session_log_probability(session, id, &x, nullptr) == MN_OK);
    total += std::exp(double(x));
  }
  return total;
}

}  // namespace

TEST(numbers_in_half_precision) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits >> 10 & 31) == 31) continue;  // infinite, or not a number
    CHECK(micronet::to_half(micronet::from_half(uint16_t(bits))) == bits);
  }
  CHECK(micronet::from_half(0x3C00) == 1.0f && micronet::from_half(0xC000) == -2.0f);
  CHECK(micronet::to_half(1e9f) == 0x7BFF && micronet::to_half(-1e9f) == 0xFBFF);
  CHECK(micronet::to_half(1.00048828125f) == 0x3C00 && micronet::to_half(1.00146484375f) == 0x3C02);  // ties to even
}

TEST(sessions_recall_earlier_texts) {
  for (const int bits : {9, 32}) {
    std::vector<uint8_t> file = packed::make(shape(bits)).bytes();
    mn_model* model = nullptr;
    CHECK(mn_model_open_bytes(file.data(), file.size(), "auto", &model, nullptr) == MN_OK);
    mn_session *first = nullptr, *session = nullptr, *fork = nullptr, *again = nullptr;
    CHECK(mn_session_start(model, &first, nullptr) == MN_OK);
    const int32_t text[] = {1, 5, 3, 2, 7, 8};
    CHECK(mn_session_feed_many(first, text, 6, nullptr) == MN_OK);
    float states[3 * kWidth];
    int32_t following[3];
    size_t count = 0;
    CHECK(mn_session_remembered(first, 3, states, following, &count, nullptr) == MN_OK);
    CHECK(count == 3 && following[0] == 2 && following[2] == 8);
    uint16_t halves[3 * kWidth];
    for (int i = 0; i < 3 * kWidth; ++i) halves[i] = micronet::to_half(states[i]);
    following[1] = kKnown + 1;  // the second of the words
    const char* words[] = {"frob", "knob"};
    const size_t sizes[] = {4, 4};
    const uint32_t counts[] = {100, 300};
    mn_recollections* recollections = nullptr;
    mn_error error;
    CHECK(mn_recollections_new(model, halves, following, 3, words, sizes, counts, 2, 0.3, 0.2, &recollections, &error) ==
          MN_OK);
    CHECK(mn_session_start(model, &session, nullptr) == MN_OK);
    CHECK(mn_session_recall(session, recollections, &error) == MN_OK);
    mn_recollections_free(recollections);  // the session keeps what it needs
    CHECK(mn_session_added(session) == 2);
    int32_t mine = 0;
    CHECK(mn_session_add_word(session, "mine", 4, &mine, nullptr) == MN_OK);
    const int32_t typed[] = {1, mine, 3};
    CHECK(mn_session_feed_many(session, typed, 3, nullptr) == MN_OK);
    CHECK(std::abs(sum(session) - 1) < 1e-5);
    float chance = 0, other = 0;
    CHECK(mn_session_log_probability(session, kKnown, &chance, nullptr) == MN_OK);
    CHECK(std::abs(std::exp(chance) - 0.05f) < 1e-5f);  // a quarter of the words' share of 0.2, no state
    CHECK(mn_session_fork(session, &fork, nullptr) == MN_OK);
    CHECK(mn_session_log_probability(fork, kKnown, &other, nullptr) == MN_OK && other == chance);
    size_t size = 0;
    CHECK(mn_session_save(session, nullptr, &size, nullptr) == MN_OK);
    std::string saved(size, 0);
    CHECK(mn_session_save(session, &saved[0], &size, nullptr) == MN_OK);
    CHECK(saved.find("frob") == saved.npos && saved.find("mine") != saved.npos);
    CHECK(mn_session_restore(model, saved.data(), saved.size(), &again, &error) == MN_OK);
    CHECK(mn_session_added(again) == 1 && std::abs(sum(again) - 1) < 1e-5);
    CHECK(mn_session_forget_word(session, "mine", 4, nullptr) == MN_OK);
    CHECK(mn_session_find(session, "mine", 4) == -1 && std::abs(sum(session) - 1) < 1e-5);
    CHECK(mn_session_recall(session, nullptr, nullptr) == MN_OK && std::abs(sum(session) - 1) < 1e-5);
    const uint32_t never[] = {0, 1};
    CHECK(mn_recollections_new(model, halves, following, 3, words, sizes, never, 2, 0.3, 0.2, &recollections, &error) ==
          MN_ERROR_ARGUMENT);
    CHECK(mn_recollections_new(model, halves, following, 3, words, sizes, counts, 1, 0.3, 0.2, &recollections, &error) ==
          MN_ERROR_ARGUMENT);
    CHECK(mn_recollections_new(model, halves, following, 3, words, sizes, counts, 2, 0.9, 0.2, &recollections, &error) ==
          MN_ERROR_ARGUMENT);
    for (mn_session* one : {first, session, fork, again}) mn_session_free(one);
    mn_model_close(model);
  }
}
