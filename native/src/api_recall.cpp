// The C API of recollections: what sessions remember, and what they recall of earlier texts.
#include <algorithm>
#include <unordered_set>

#include "api_guard.hpp"
#include "utf8.hpp"

struct mn_recollections {
  std::shared_ptr<const micronet::Recollections> recollections;
};

namespace {

using namespace micronet;

// Check the words to recall and return them: each must be UTF-8 and differ from the others.
std::vector<CountedWord> checked_words(const char* const* words, const size_t* sizes, const uint32_t* counts, size_t count) {
  std::vector<CountedWord> list;
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < count; ++i) {
    check(words[i]);
    const std::string_view word(words[i], sizes[i]);
    if (word.empty() || word.find('\n') != word.npos ||
        !is_utf8({reinterpret_cast<const uint8_t*>(word.data()), word.size()}) || !seen.insert(word).second)
      fail(MN_ERROR_ARGUMENT, "recalled word %zu is empty, given twice, has a line feed or is not UTF-8", i);
    if (!counts[i]) fail(MN_ERROR_ARGUMENT, "the count of recalled word %zu must be 1 or more", i);
    list.push_back({std::string(word), counts[i]});
  }
  return list;
}

}  // namespace

extern "C" {

mn_status mn_recollections_new(const mn_model* model, const uint16_t* states, const int32_t* following, size_t count,
                               const char* const* words, const size_t* sizes, const uint32_t* counts, size_t word_count,
                               double state_share, double word_share, mn_recollections** recollections,
                               mn_error* error) {
  return guarded(error, [&] {
    check(model && ((states && following) || !count) && ((words && sizes && counts) || !word_count) && recollections);
    if (word_count > size_t(AddedWords::kMost) || count > kLargestMemory / 4)
      fail(MN_ERROR_ARGUMENT, "too many states or words to recall: %zu and %zu", count, word_count);
    auto made = std::make_unique<mn_recollections>();
    made->recollections = std::make_shared<const Recollections>(
        *model->model, states, following, int64_t(count), checked_words(words, sizes, counts, word_count), state_share,
        word_share);
    *recollections = made.release();
  });
}

void mn_recollections_free(mn_recollections* recollections) { delete recollections; }

mn_status mn_session_recall(mn_session* session, const mn_recollections* recollections, mn_error* error) {
  return guarded(error, [&] {
    check(session);
    session->session.recall(recollections ? recollections->recollections : nullptr);
    session->learned = {};
  });
}

mn_status mn_session_remembered(const mn_session* session, size_t room, float* states, int32_t* words, size_t* count,
                                mn_error* error) {
  return guarded(error, [&] {
    check(session && ((states && words) || !room) && count);
    const Session& own = session->session;
    const int64_t taken = std::min(own.remembered(), int64_t(std::min<size_t>(room, size_t(own.remembered()))));
    for (int64_t i = 0; i < taken; ++i) words[i] = own.remembered(taken - i, states + i * own.model().config.width);
    *count = size_t(taken);
  });
}

mn_status mn_session_forget_word(mn_session* session, const char* word, size_t size, mn_error* error) {
  return guarded(error, [&] {
    check(session && word);
    session->session.drop_word({word, size});
    session->learned = {};  // it may have the word
  });
}

}  // extern "C"
