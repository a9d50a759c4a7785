// What fuzzers call: feeds bytes as text to a small model in pieces, asks everything between them, saves and
// restores. Every fourth input is a saved text instead.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "characters.hpp"
#include "checksum.hpp"
#include "micronet.h"
#include "text_model.hpp"

namespace {

std::vector<uint8_t> saved(const mn_text* text) {
  mn_error error;
  size_t size = 0;
  if (mn_text_save(text, nullptr, &size, &error) != MN_OK) __builtin_trap();
  std::vector<uint8_t> bytes(size);
  if (mn_text_save(text, bytes.data(), &size, &error) != MN_OK) __builtin_trap();
  return bytes;
}

void ask(mn_text* text, const std::string& piece) {
  mn_error error;
  mn_words* words = nullptr;
  uint64_t tokens = 0;
  mn_text_tokens(text, &tokens, &error);
  for (int question = 0; question < 4; ++question) {
    mn_status status = MN_OK;
    if (question == 0) status = mn_text_next(text, 3, &words, &error);
    if (question == 1) status = mn_text_suggest(text, 3, &words, &error);
    if (question == 2) status = mn_text_complete(text, piece.data(), piece.size() < 3 ? piece.size() : 1, 3, &words, &error);
    if (question == 3) status = mn_text_write(text, tokens % 2 ? 0.9 : 0, 0, 0.9, &words, &error);
    if (status != MN_OK) continue;
    for (size_t i = 0; i < mn_words_count(words); ++i)
      if (!mn_words_text(words, i, nullptr) || !mn_words_piece(words, i, nullptr)) __builtin_trap();
    mn_words_free(words);
    words = nullptr;
  }
}

// A saved text with the input laid over what was saved, and its checksum and the session's hash right again.
void restore(const mn_model* model, const uint8_t* data, size_t size) {
  mn_error error;
  mn_text *text = nullptr, *restored = nullptr;
  if (mn_text_read(model, "ab a", 4, &text, &error) != MN_OK) __builtin_trap();
  std::vector<uint8_t> bytes = saved(text);
  const size_t from = 17 + 8;  // behind the magic and the checksum
  for (size_t i = 0; i < size && from + i + 8 < bytes.size(); ++i) bytes[from + i] ^= data[i];
  uint32_t place = 0;
  std::memcpy(&place, bytes.data() + from, 4);
  const size_t begin = from + 4 + size_t(place);
  if (begin + 8 <= bytes.size()) {
    const uint64_t hash = micronet::hash_bytes({bytes.data() + begin, bytes.size() - 8 - begin});
    std::memcpy(bytes.data() + bytes.size() - 8, &hash, 8);
  }
  const uint64_t sum = micronet::checksum({bytes.data() + from, bytes.size() - from});
  std::memcpy(bytes.data() + from - 8, &sum, 8);
  if (mn_text_restore(model, bytes.data(), bytes.size(), &restored, &error) == MN_OK) ask(restored, "a");
  mn_text_free(restored);
  mn_text_free(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const mn_model* model = packed::text_model(data[0] % packed::kTextModels);
  const uint8_t kind = data[0] / packed::kTextModels;
  if (kind % 4 == 3) {
    restore(model, data + 2, size - 2);
    return 0;
  }
  micronet::Text32 text;
  if (!fuzz::text_of(data + 2, size - 2, kind % 4 == 2, text)) return 0;
  mn_error error;
  mn_text *reading = nullptr, *restored = nullptr;
  if (mn_text_start(model, &reading, &error) != MN_OK) __builtin_trap();
  mn_text_seed(reading, data[1], &error);
  const size_t half = data[1] % (text.size() + 1);
  const std::string pieces[] = {micronet::encode_utf8(text.substr(0, half)), micronet::encode_utf8(text.substr(half))};
  for (const std::string& piece : pieces) {
    if (mn_text_feed(reading, piece.data(), piece.size(), &error) != MN_OK) __builtin_trap();
    const std::vector<uint8_t> bytes = saved(reading);
    if (mn_text_restore(model, bytes.data(), bytes.size(), &restored, &error) != MN_OK) __builtin_trap();
    if (saved(restored) != bytes) __builtin_trap();
    ask(restored, piece);
    mn_text_free(restored);
    restored = nullptr;
  }
  ask(reading, pieces[0]);
  mn_text_free(reading);
  mn_words* words = nullptr;
  const std::string whole = pieces[0] + pieces[1];
  if (mn_model_score_text(model, whole.data(), whole.size(), 1, &words, &error) == MN_OK) mn_words_free(words);
  return 0;
}
