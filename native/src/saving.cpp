// The bytes of a saved session: "MNSESSN1", the model's fingerprint, the number of tokens, the last hidden
// state; for each token in the window, oldest first, each layer's keys and values; for each state in the
// cache, oldest first, the state and the word that followed it; for a table of n-grams the last words,
// oldest first; a hash of everything before it. States are 16-bit integers if the model's states are
// integers, else floats.
#include "saving.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "sorting.hpp"
#include "status.hpp"
#include "utf8.hpp"

namespace micronet {

namespace {

constexpr char kMagic[8] = {'M', 'N', 'S', 'E', 'S', 'S', 'N', '1'};
// The same with the session's added words before the hash: their number and, for each, its size and its bytes.
constexpr char kMagicWithWords[8] = {'M', 'N', 'S', 'E', 'S', 'S', 'N', 'W'};
constexpr int64_t kHeader = 24;

struct Sizes {
  int64_t hidden, token, memory;  // bytes of the hidden state, of a token's keys and values, of a cached state
  int64_t kept, remembered, read; // tokens
  int64_t total() const { return kHeader + hidden + kept * token + remembered * memory + read * 4 + 8; }
};

Sizes sizes_of(const Model& model, int64_t tokens) {
  const Config& c = model.config;
  Sizes s{};
  s.hidden = c.width * (model.hidden.on ? 2 : 4);
  for (const Layer& layer : model.layers)
    s.token += c.heads * c.key_width * (layer.integer_keys ? 2 : 4) +
               c.heads * c.value_width * (layer.integer_values ? 2 : 4);
  s.memory = c.width * (model.integer_cache ? 2 : 4) + 4;
  s.kept = std::min(tokens, c.context - 1);
  s.remembered = c.cache && tokens ? std::min(tokens - 1, c.cache) : 0;
  s.read = std::min(tokens, model.ngrams.kept());
  return s;
}

class Writer {
 public:
  explicit Writer(uint8_t* to) : to_(to) {}
  template <class T>
  void put(const T* from, int64_t count) {
    if (!count) return;  // memcpy must not be given NULL, even for no bytes
    std::memcpy(to_, from, size_t(count) * sizeof(T));
    to_ += size_t(count) * sizeof(T);
  }

 private:
  uint8_t* to_;
};

class Reader {
 public:
  explicit Reader(const uint8_t* from) : from_(from) {}
  template <class T>
  void get(T* to, int64_t count) {
    if (!count) return;
    std::memcpy(to, from_, size_t(count) * sizeof(T));
    from_ += size_t(count) * sizeof(T);
  }
  // A quantizer's integers must be within its limit, or sums could overflow.
  void get_integers(int16_t* to, int64_t count, const Quantizer& quantizer) {
    get(to, count);
    for (int64_t i = 0; i < count; ++i)
      if (std::abs(int(to[i])) > int(quantizer.limit))
        fail(MN_ERROR_FORMAT, "the saved session has an integer %d outside its %d bits; it is damaged", int(to[i]),
             quantizer.bits);
  }

 private:
  const uint8_t* from_;
};

void fill_values(const int16_t* integers, float scale, int64_t count, float* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = float(integers[i]) * scale;
}

}  // namespace

namespace {

// Return the ids of the added words to save. If the session recalls a person's earlier texts or was told to forget
// words, these are only the words that its own cache refers to; else all of them.
std::vector<int32_t> saved_words(const Session& session) {
  const AddedWords& added = session.added();
  const int32_t first = session.model().vocabulary.size();
  std::vector<int32_t> ids;
  if (!session.recalls() && !added.dropped()) {
    for (int32_t i = 0; i < added.size(); ++i) ids.push_back(first + i);
    return ids;
  }
  const int64_t last = session.tokens() - 1, remembered = sizes_of(session.model(), session.tokens()).remembered;
  for (int64_t j = last - remembered; j < last; ++j)
    if (const int32_t word = session.state().memory.word(j); word >= first) ids.push_back(word);
  sort_all(ids.begin(), ids.end(), std::less<int32_t>());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

size_t size_of(const AddedWords& added, const std::vector<int32_t>& ids) {
  size_t size = ids.empty() ? 0 : 4;
  for (const int32_t id : ids) size += 4 + added.word(id).size();
  return size;
}

// Add the words of a saved session; throws Failure.
void restore_added(Bytes bytes, Session& session) {
  size_t at = 0;
  auto number = [&] {
    if (bytes.size - at < 4) fail(MN_ERROR_FORMAT, "the words of the saved session are truncated; save it again");
    at += 4;
    return read_at<uint32_t>(bytes.data + at - 4);
  };
  const uint32_t count = number();
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t size = number();
    if (bytes.size - at < size) fail(MN_ERROR_FORMAT, "the words of the saved session are truncated; save it again");
    const std::string_view word(reinterpret_cast<const char*>(bytes.data + at), size);
    if (!is_utf8(bytes.part(at, at + size)) ||
        session.added().add(word) != session.model().vocabulary.size() + int32_t(i))
      fail(MN_ERROR_FORMAT, "word %u of the saved session is not UTF-8 or not new; save it again", i);
    at += size;
  }
  if (at != bytes.size || !count) fail(MN_ERROR_FORMAT, "the words of the saved session are damaged; save it again");
}

}  // namespace

size_t saved_size(const Session& session) {
  const Model& model = session.model();
  return checked_bytes(sizes_of(model, session.tokens()).total(), 1) + size_of(session.added(), saved_words(session));
}

void save(const Session& session, uint8_t* bytes) {
  const Model& model = session.model();
  const Config& c = model.config;
  const Sizes sizes = sizes_of(model, session.tokens());
  Writer writer(bytes);
  const AddedWords& added = session.added();
  const std::vector<int32_t> words = saved_words(session);
  writer.put(words.empty() ? kMagic : kMagicWithWords, 8);
  writer.put(&model.fingerprint, 1);
  const auto tokens = uint64_t(session.tokens());
  writer.put(&tokens, 1);
  const States& hidden = session.hidden();
  if (model.hidden.on) writer.put(hidden.integers.data(), c.width);
  else writer.put(hidden.values.data(), c.width);

  const Window& window = session.state().window;
  const int64_t keys = c.heads * c.key_width, values = c.heads * c.value_width;
  std::vector<float> floats(size_t(2 * keys + values));
  std::vector<int16_t> integers(floats.size());
  for (int64_t place = window.end() - sizes.kept; place < window.end(); ++place)
    for (int64_t l = 0; l < c.layers; ++l) {
      const Layer& layer = model.layers[size_t(l)];
      window.get(l, place, floats.data(), integers.data());
      if (layer.integer_keys) writer.put(integers.data() + keys, keys);
      else writer.put(floats.data() + keys, keys);
      if (layer.integer_values) writer.put(integers.data() + 2 * keys, values);
      else writer.put(floats.data() + 2 * keys, values);
    }

  const Memory& memory = session.state().memory;
  floats.resize(size_t(c.width));
  integers.resize(size_t(c.width));
  const int64_t last = session.tokens() - 1;
  for (int64_t j = last - sizes.remembered; j < last; ++j) {
    memory.get(j, floats.data(), integers.data());
    if (model.integer_cache) writer.put(integers.data(), c.width);
    else writer.put(floats.data(), c.width);
    int32_t word = memory.word(j);
    if (word >= model.vocabulary.size())  // ids of saved words have no gaps
      word = model.vocabulary.size() + int32_t(std::lower_bound(words.begin(), words.end(), word) - words.begin());
    writer.put(&word, 1);
  }
  writer.put(session.state().read.data(), sizes.read);
  if (const auto count = uint32_t(words.size())) {
    writer.put(&count, 1);
    for (const int32_t id : words) {
      const std::string& word = added.word(id);
      const auto size = uint32_t(word.size());
      writer.put(&size, 1);
      writer.put(word.data(), int64_t(word.size()));
    }
  }
  const uint64_t hash = hash_bytes({bytes, saved_size(session) - 8});
  writer.put(&hash, 1);
}

Session restore(const Model& model, Bytes bytes) {
  if (bytes.size < size_t(kHeader) + 8 || (std::memcmp(bytes.data, kMagic, 8) != 0 && std::memcmp(bytes.data, kMagicWithWords, 8) != 0))
    fail(MN_ERROR_FORMAT, "these %zu bytes are not a saved session of this version; save it again", bytes.size);
  if (read_at<uint64_t>(bytes.data + 8) != model.fingerprint)
    fail(MN_ERROR_FORMAT, "the saved session belongs to another model; restore it with the model it was saved from");
  const auto tokens = read_at<uint64_t>(bytes.data + 16);
  const bool with_words = std::memcmp(bytes.data, kMagicWithWords, 8) == 0;
  if (tokens > uint64_t{1} << 60 ||
      (with_words ? sizes_of(model, int64_t(tokens)).total() >= int64_t(bytes.size)
                  : sizes_of(model, int64_t(tokens)).total() != int64_t(bytes.size)) ||
      hash_bytes(bytes.part(0, bytes.size - 8)) != read_at<uint64_t>(bytes.data + bytes.size - 8))
    fail(MN_ERROR_FORMAT, "the saved session of %zu bytes is truncated or damaged; save it again", bytes.size);

  const Config& c = model.config;
  const Sizes sizes = sizes_of(model, int64_t(tokens));
  Session session(model);
  if (with_words) restore_added(bytes.part(size_t(sizes.total()) - 8, bytes.size - 8), session);
  Reader reader(bytes.data + kHeader);
  States& hidden = session.hidden();
  if (model.hidden.on) {
    reader.get_integers(hidden.integers.data(), c.width, model.hidden);
    fill_values(hidden.integers.data(), model.hidden.scale, c.width, hidden.values.data());
  } else {
    reader.get(hidden.values.data(), c.width);
  }

  State& state = session.state();
  const int64_t keys = c.heads * c.key_width, values = c.heads * c.value_width;
  std::vector<float> floats(size_t(2 * keys + values));
  std::vector<int16_t> integers(floats.size());
  const int64_t first = sizes.kept ? state.window.reserve(sizes.kept) : 0;
  for (int64_t place = first; place < first + sizes.kept; ++place)
    for (int64_t l = 0; l < c.layers; ++l) {
      const Layer& layer = model.layers[size_t(l)];
      if (layer.integer_keys) reader.get_integers(integers.data() + keys, keys, layer.qkv_values);
      else reader.get(floats.data() + keys, keys);
      if (layer.integer_values) reader.get_integers(integers.data() + 2 * keys, values, layer.qkv_values);
      else reader.get(floats.data() + 2 * keys, values);
      state.window.put(l, place, floats.data(), integers.data());
    }
  state.window.advance(sizes.kept);

  const int64_t last = int64_t(tokens) - 1;
  if (tokens) state.memory.reserve(last - sizes.remembered, sizes.remembered + 1);
  floats.resize(size_t(c.width));
  integers.resize(size_t(c.width));
  for (int64_t j = last - sizes.remembered; j < last; ++j) {
    if (model.integer_cache) reader.get_integers(integers.data(), c.width, model.hidden);
    else reader.get(floats.data(), c.width);
    int32_t word;
    reader.get(&word, 1);
    if (word < 0 || word >= c.vocabulary() + session.added().size())
      fail(MN_ERROR_FORMAT, "the saved session has a word %d outside the vocabulary; it is damaged", word);
    state.memory.put(j, floats.data(), integers.data());
    state.memory.set_word(j, word);
  }
  state.read.resize(size_t(sizes.read));
  reader.get(state.read.data(), sizes.read);
  for (const int32_t word : state.read)
    if (word < 0 || word >= c.vocabulary())
      fail(MN_ERROR_FORMAT, "the saved session has a word %d outside the vocabulary; it is damaged", word);
  if (tokens) state.memory.put(last, hidden.values.data(), hidden.integers.data());
  state.tokens = int64_t(tokens);
  return session;
}

}  // namespace micronet
