// What fuzzers call: restores a session from bytes, with a header and a hash that are right, and goes on with it.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bytes.hpp"
#include "micronet.h"
#include "packed.hpp"

namespace {

// Models of three kinds: floats without a cache, floats with one, and integers.
mn_model* model_of(int kind) {
  static mn_model* models[3] = {};
  static std::vector<uint8_t> files[3];
  if (!models[kind]) {
    packed::Options o;
    o.layers = 1;
    o.vocabulary = 9;
    o.cutoffs = {4, 6};
    o.embedding_widths = {4, 2, 1};
    o.width = 4;
    o.ffn_width = 5;
    o.bits = kind == 2 ? 9 : 32;
    o.activation_bits = kind == 2 ? 9 : 0;
    o.cache = kind ? 3 : 0;
    files[kind] = packed::make(o).bytes();
    mn_error error;
    if (mn_model_open_bytes(files[kind].data(), files[kind].size(), "scalar", &models[kind], &error) != MN_OK) __builtin_trap();
  }
  return models[kind];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  mn_model* model = model_of(data[0] % 3);
  mn_error error;
  mn_session *session = nullptr, *restored = nullptr;
  if (mn_session_start(model, &session, &error) != MN_OK) return 0;
  for (int i = 0; i < data[1] % 8; ++i) mn_session_feed(session, i, &error);
  int32_t id = 0;
  if (data[1] & 64)  // words that the vocabulary lacks are saved, too
    for (const char* word : {"new", "newer"})
      if (mn_session_add_word(session, word, std::strlen(word), &id, &error) == MN_OK) mn_session_feed(session, id, &error);
  size_t length = 0;
  mn_session_save(session, nullptr, &length, &error);
  std::vector<uint8_t> saved(length);
  mn_session_save(session, saved.data(), &length, &error);
  // The input is laid over what was saved, behind the fingerprint or at the end; bit 3 decides whether the size is kept.
  size_t from = data[1] & 16 ? 16 : 24;
  if (data[1] & 128 && saved.size() > from + size + 6) from = saved.size() - size - 6;
  if (data[1] & 8) saved.resize(from + size);
  for (size_t i = 2; i < size && from + i - 2 + 8 < saved.size(); ++i) saved[from + i - 2] ^= data[i];
  if (!(data[1] & 32) && saved.size() >= 8) {
    const uint64_t hash = micronet::hash_bytes({saved.data(), saved.size() - 8});
    std::memcpy(saved.data() + saved.size() - 8, &hash, 8);
  }
  if (mn_session_restore(model, saved.data(), saved.size(), &restored, &error) == MN_OK) {
    float numbers[9];
    mn_session_feed(restored, 1, &error);
    mn_session_log_distribution(restored, numbers, &error);
    for (int32_t word = 9; word < 11; ++word) mn_session_word(restored, word, &length);
  }
  mn_session_free(restored);
  mn_session_free(session);
  return 0;
}
