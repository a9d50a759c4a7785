#include "vocabulary.hpp"

#include "status.hpp"
#include "utf8.hpp"

namespace micronet {

namespace {

uint64_t hash_word(std::string_view word) {
  uint64_t h = word.size() * 0x9E3779B97F4A7C15u;
  const char* p = word.data();
  size_t left = word.size();
  auto mix = [&h](uint64_t v) {
    h = (h ^ v) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  };
  for (; left > 8; p += 8, left -= 8) {
    uint64_t v;
    std::memcpy(&v, p, 8);
    mix(v);
  }
  uint64_t last = 0;
  std::memcpy(&last, p, left);
  mix(last);
  h *= 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}

}  // namespace

Vocabulary::Vocabulary(Bytes text, int64_t count) : text_(text), count_(int32_t(count)) {
  // A word takes at least two bytes, so a false count cannot use much memory.
  if (count > int64_t(text.size / 2) || text.size >= UINT32_MAX)
    fail(MN_ERROR_FORMAT, "the vocabulary of %lld words has %zu bytes of text; pack the model again",
         static_cast<long long>(count), text.size);
  if (!is_utf8(text)) fail(MN_ERROR_FORMAT, "the vocabulary is not UTF-8; pack the model again");
  starts_ = Buffer<uint32_t>(count + 1);
  uint64_t room = 16;
  while (room < uint64_t(count) * 3 / 2) room *= 2;
  table_ = Buffer<uint64_t>(int64_t(room));
  mask_ = room - 1;
  size_t at = 0;
  for (int32_t id = 0; id < count_; ++id) {
    const void* end = at < text.size ? std::memchr(text.data + at, '\n', text.size - at) : nullptr;
    const size_t stop = end ? size_t(static_cast<const uint8_t*>(end) - text.data) : at;
    if (stop == at)
      fail(MN_ERROR_FORMAT, "word %d of the vocabulary is empty or missing; pack the model again", id);
    starts_[id] = uint32_t(at);
    starts_[id + 1] = uint32_t(stop + 1);
    at = stop + 1;
  }
  if (at != text.size)
    fail(MN_ERROR_FORMAT, "the vocabulary has more than its %d words; pack the model again", count_);
  index();
}

void Vocabulary::index() {
  // Words that were made to collide would need quadratic time: ordinary ones need about two probes.
  int64_t probes = 64 * int64_t(count_) + 4096;
  constexpr int32_t kGroup = 32;  // the slots of a group are fetched before the first is looked at
  uint64_t hashes[kGroup];
  for (int32_t from = 0; from < count_; from += kGroup) {
    const int32_t count = count_ - from < kGroup ? count_ - from : kGroup;
    for (int32_t i = 0; i < count; ++i) {
      hashes[i] = hash_word(word(from + i));
      __builtin_prefetch(table_.data() + (hashes[i] & mask_));
    }
    for (int32_t i = 0; i < count; ++i) {
      const int32_t id = from + i;
      const uint64_t slot = slot_of(word(id), hashes[i], probes);
      if (probes < 0)
        fail(MN_ERROR_FORMAT, "the vocabulary's words have too many hash collisions; it is damaged");
      if (table_[int64_t(slot)])
        fail(MN_ERROR_FORMAT, "words %d and %d of the vocabulary are the same; pack the model again",
             int(uint32_t(table_[int64_t(slot)])) - 1, id);
      table_[int64_t(slot)] = (hashes[i] >> 32 << 32) | uint32_t(id + 1);
    }
  }
}

uint64_t Vocabulary::slot_of(std::string_view wanted, uint64_t hash, int64_t& probes) const {
  uint64_t slot = hash & mask_;
  while (const uint64_t entry = table_[int64_t(slot)]) {
    if (--probes < 0) break;
    if (entry >> 32 == hash >> 32 && word(int32_t(uint32_t(entry)) - 1) == wanted) break;
    slot = (slot + 1) & mask_;
  }
  return slot;
}

int32_t Vocabulary::find(std::string_view wanted) const {
  if (!count_) return -1;
  int64_t probes = int64_t(mask_) + 1;
  return int32_t(uint32_t(table_[int64_t(slot_of(wanted, hash_word(wanted), probes))])) - 1;
}

}  // namespace micronet
