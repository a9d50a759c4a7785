// What fuzzers call: reads bytes as a personal memory, most of them with a beginning and a checksum that are right. What
// is accepted must be written back to the same bytes, and may be learned from, recalled and forgotten.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "api_guard.hpp"
#include "checksum.hpp"
#include "personal.hpp"
#include "text_model.hpp"
#include "utf8.hpp"

namespace {

using namespace micronet;

constexpr size_t kBeginning = 24;  // the magic, the model's checksum, the vocabulary's size and the width

Bytes bytes_of(const std::string& text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }

std::string with_checksum(std::string file) {
  const uint64_t sum = checksum(bytes_of(file));
  file.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return file;
}

// Trap if a memory cannot be written and read again.
void must_last(const Model& model, const Memories& memories) {
  const std::string file = encode_memories(model, memories);
  if (file.size() > most_bytes(model)) __builtin_trap();
  if (encode_memories(model, decode_memories(model, bytes_of(file))) != file) __builtin_trap();
}

void change(const Model& model, const Memories& memories) {
  size_t tokens = 0;
  const Memories more = learn_text(model, memories, U"zorb (ab) Zorb, abd.\n", &tokens);
  must_last(model, more);
  must_last(model, learn_words(model, more, memories.words));
  for (const CountedWord& word : memories.words) {
    bool found = false;
    const Memories fewer = forget_word(model, more, decode_utf8(word.text), &found);
    must_last(model, fewer);
    if (fewer.following.size() > more.following.size() || fewer.words.size() > more.words.size()) __builtin_trap();
  }
}

void recall(const mn_model* model, const Memories& memories) {
  std::vector<const char*> words;
  std::vector<size_t> sizes;
  std::vector<uint32_t> counts;
  for (const CountedWord& word : memories.words) {
    words.push_back(word.text.data());
    sizes.push_back(word.text.size());
    counts.push_back(word.count);
  }
  mn_error error;
  mn_recollections* recollections = nullptr;
  mn_session* session = nullptr;
  if (mn_recollections_new(model, memories.states.data(), memories.following.data(), memories.following.size(), words.data(),
                           sizes.data(), counts.data(), words.size(), 0.3, 0.01, &recollections, &error) != MN_OK ||
      mn_session_start(model, &session, &error) != MN_OK || mn_session_recall(session, recollections, &error) != MN_OK)
    __builtin_trap();
  std::vector<float> numbers(size_t(model->model->vocabulary.size()));
  mn_session_feed(session, 1, &error);
  mn_session_log_distribution(session, numbers.data(), &error);
  mn_session_free(session);
  mn_recollections_free(recollections);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!size) return 0;
  const mn_model* opened = packed::text_model(data[0] % packed::kTextModels);
  const Model& model = *opened->model;
  std::string file(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] / packed::kTextModels % 8 != 7) file = with_checksum(encode_memories(model, {}).substr(0, kBeginning) + file);
  Memories memories;
  try {
    memories = decode_memories(model, bytes_of(file));
  } catch (const Failure&) {
    return 0;
  }
  if (encode_memories(model, memories) != file) __builtin_trap();
  change(model, memories);
  recall(opened, memories);
  return 0;
}
