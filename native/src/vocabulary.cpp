#include "vocabulary.hpp"

#include <algorithm>

#include "sorting.hpp"
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

void sort_texts(std::vector<Headed>& texts) {
  sort_all(texts.begin(), texts.end(), [](const Headed& a, const Headed& b) { return a < b; });
}

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
  if (!index()) give_up_table();
}

bool Vocabulary::index() {
  // Limit the probes: ordinary words need about two, but words made to collide would need quadratic time.
  int64_t probes = 64 * int64_t(count_) + 4096;
  constexpr int32_t kGroup = 32;  // words per group; all slots of a group are prefetched before the first is read
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
      if (probes < 0) return false;
      if (table_[int64_t(slot)])
        fail(MN_ERROR_FORMAT, "words %d and %d of the vocabulary are the same; pack the model again",
             int(uint32_t(table_[int64_t(slot)])) - 1, id);
      table_[int64_t(slot)] = (hashes[i] >> 32 << 32) | uint32_t(id + 1);
    }
  }
  return true;
}

// Words that were made to collide are found by binary search in a sorted list: slower than a hash table, but with a
// guaranteed bound.
void Vocabulary::give_up_table() {
  table_ = Buffer<uint64_t>();
  const std::vector<int32_t>& ids = sorted();
  for (size_t i = 1; i < ids.size(); ++i)
    if (word(ids[i - 1]) == word(ids[i]))
      fail(MN_ERROR_FORMAT, "words %d and %d of the vocabulary are the same; pack the model again",
           std::min(ids[i - 1], ids[i]), std::max(ids[i - 1], ids[i]));
}

const std::vector<int32_t>& Vocabulary::sorted() const {
  sorted_->made([this] {
    std::vector<Headed> headed;
    for (int32_t id = 0; id < count_; ++id) headed.push_back({word(id), id});
    sort_texts(headed);
    std::vector<int32_t> ids;
    for (const Headed& one : headed) ids.push_back(one.id);
    sorted_->ids = std::move(ids);
  });
  return sorted_->ids;
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

std::pair<const int32_t*, const int32_t*> Vocabulary::beginning_with(std::string_view prefix) const {
  const std::vector<int32_t>& ids = sorted();
  const auto first = std::lower_bound(ids.begin(), ids.end(), prefix,
                                      [this](int32_t id, std::string_view wanted) { return word(id) < wanted; });
  const auto last = std::upper_bound(first, ids.end(), prefix, [this](std::string_view wanted, int32_t id) {
    return wanted < word(id).substr(0, wanted.size());
  });
  return {ids.data() + (first - ids.begin()), ids.data() + (last - ids.begin())};
}

int32_t Vocabulary::find(std::string_view wanted) const {
  if (!count_) return -1;
  if (!table_.size()) {
    const std::vector<int32_t>& ids = sorted();
    const auto at = std::lower_bound(ids.begin(), ids.end(), wanted,
                                     [this](int32_t id, std::string_view w) { return word(id) < w; });
    return at != ids.end() && word(*at) == wanted ? *at : -1;
  }
  int64_t probes = int64_t(mask_) + 1;
  return int32_t(uint32_t(table_[int64_t(slot_of(wanted, hash_word(wanted), probes))])) - 1;
}

}  // namespace micronet
