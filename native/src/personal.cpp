#include "personal.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "checksum.hpp"
#include "session.hpp"
#include "sorting.hpp"
#include "status.hpp"
#include "utf8.hpp"

#if !defined(MICRONET_WITHOUT_RECOLLECTIONS)

namespace micronet {

namespace {

constexpr char kMagic[] = "MNPERSN1";
constexpr size_t kHeader = 32, kSum = 8;
constexpr const char* kRemedy = "remove it, or restore it from a copy";

// The word after a state: an id of the vocabulary, or a new word.
struct Label {
  int32_t id;
  std::string word;  // empty for a word of the vocabulary
};

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

bool keeps(std::string_view word) {
  return !word.empty() && word.size() <= kLongestWord && word.find('\n') == word.npos;
}

std::vector<Label> labels_of(const Model& model, const Memories& memories) {
  const int32_t known = model.vocabulary.size();
  std::vector<Label> labels;
  for (int32_t id : memories.following)
    labels.push_back(id < known ? Label{id, {}} : Label{id, memories.words[size_t(id - known)].text});
  return labels;
}

// Counts of words, in the order in which they were last read.
class Counts {
 public:
  explicit Counts(const std::vector<CountedWord>& words) {
    for (const CountedWord& word : words) add(word.text, word.count);
  }
  void add(const std::string& word, uint64_t times) {
    const auto known = places_.find(word);
    if (known != places_.end()) {
      times += words_[known->second].count;
      words_[known->second].count = 0;  // the word moves to the end
    }
    places_[word] = words_.size();
    words_.push_back({word, uint32_t(std::min<uint64_t>(times, UINT32_MAX))});
  }
  std::vector<CountedWord> all() const {
    std::vector<CountedWord> left;
    for (const CountedWord& word : words_)
      if (word.count) left.push_back(word);
    return left;
  }
  // If there are too many words, drop the rarest, and of equally rare ones the oldest.
  std::vector<CountedWord> kept() const {
    std::vector<CountedWord> left = all();
    if (left.size() <= kMostWords) return left;
    std::vector<size_t> rarest(left.size());
    for (size_t i = 0; i < rarest.size(); ++i) rarest[i] = i;
    sort_all(rarest.begin(), rarest.end(), [&](size_t a, size_t b) {
      return left[a].count != left[b].count ? left[a].count < left[b].count : a < b;
    });
    for (size_t i = 0; i < left.size() - kMostWords; ++i) left[rarest[i]].count = 0;
    left.erase(std::remove_if(left.begin(), left.end(), [](const CountedWord& word) { return !word.count; }), left.end());
    return left;
  }

 private:
  std::vector<CountedWord> words_;
  std::unordered_map<std::string, size_t> places_;
};

Memories put_together(const Model& model, std::vector<CountedWord> words, const std::vector<Label>& labels,
                      const std::vector<uint16_t>& states) {
  const auto width = size_t(model.config.width);
  std::unordered_map<std::string_view, int32_t> numbers;
  for (size_t i = 0; i < words.size(); ++i) numbers[words[i].text] = model.vocabulary.size() + int32_t(i);
  Memories after;
  for (size_t i = 0; i < labels.size(); ++i) {
    int32_t id = labels[i].id;
    if (!labels[i].word.empty()) {
      const auto found = numbers.find(labels[i].word);
      if (found == numbers.end()) continue;
      id = found->second;
    }
    after.following.push_back(id);
    after.states.insert(after.states.end(), states.begin() + std::ptrdiff_t(i * width),
                        states.begin() + std::ptrdiff_t((i + 1) * width));
  }
  after.words = std::move(words);
  return after;
}

Memories learned(const Model& model, const Memories& before, const std::vector<CountedWord>& words,
                 const std::vector<Label>& following, const std::vector<uint16_t>& states) {
  Counts counts(before.words);
  for (const CountedWord& word : words) counts.add(word.text, word.count);
  std::vector<Label> labels = labels_of(model, before);
  labels.insert(labels.end(), following.begin(), following.end());
  std::vector<uint16_t> all = before.states;
  all.insert(all.end(), states.begin(), states.end());
  if (labels.size() > size_t(model.config.cache)) {
    const size_t gone = labels.size() - size_t(model.config.cache);
    labels.erase(labels.begin(), labels.begin() + std::ptrdiff_t(gone));
    all.erase(all.begin(), all.begin() + std::ptrdiff_t(gone * size_t(model.config.width)));
  }
  return put_together(model, counts.kept(), labels, all);
}

// Return the number of tokens that a state can depend on.
int64_t reach(const Model& model) { return model.config.layers * (model.config.context - 1) + 1; }

Text32 folded(const Text32& word) { return to_lower(to_upper(word)); }

[[noreturn]] void refuse(const char* why) { fail(MN_ERROR_FORMAT, "%s; %s", why, kRemedy); }

}  // namespace

size_t most_bytes(const Model& model) {
  return kHeader + kMostWords * (6 + kLongestWord) + size_t(model.config.cache) * (4 + 2 * size_t(model.config.width)) + kSum;
}

std::string encode_memories(const Model& model, const Memories& memories) {
  std::string out(kMagic, 8);
  put(out, model.fingerprint);
  put(out, uint32_t(model.vocabulary.size()));
  put(out, uint32_t(model.config.width));
  put(out, uint32_t(memories.words.size()));
  put(out, uint32_t(memories.following.size()));
  for (const CountedWord& word : memories.words) {
    put(out, word.count);
    put(out, uint16_t(word.text.size()));
    out += word.text;
  }
  out.append(reinterpret_cast<const char*>(memories.following.data()), 4 * memories.following.size());
  out.append(reinterpret_cast<const char*>(memories.states.data()), 2 * memories.states.size());
  put(out, checksum({reinterpret_cast<const uint8_t*>(out.data()), out.size()}));
  return out;
}

Memories decode_memories(const Model& model, Bytes file) {
  if (file.size < kHeader + kSum || std::memcmp(file.data, kMagic, 8) != 0)
    refuse("is not a personal memory of this version");
  const Bytes body = file.part(0, file.size - kSum);
  if (checksum(body) != read_at<uint64_t>(file.data + body.size)) refuse("is truncated or damaged: its checksum is wrong");
  const auto width = size_t(model.config.width);
  if (read_at<uint64_t>(body.data + 8) != model.fingerprint ||
      read_at<uint32_t>(body.data + 16) != uint32_t(model.vocabulary.size()) || read_at<uint32_t>(body.data + 20) != width)
    fail(MN_ERROR_FORMAT, "belongs to another model: open it with that one");
  const size_t words = read_at<uint32_t>(body.data + 24), states = read_at<uint32_t>(body.data + 28);
  if (words > kMostWords || states > size_t(model.config.cache)) refuse("has more than a memory can have");
  Memories memories;
  std::unordered_set<std::string> seen;
  size_t at = kHeader;
  for (size_t i = 0; i < words; ++i) {
    if (body.size - at < 6) refuse("ends within its words");
    const auto count = read_at<uint32_t>(body.data + at);
    const size_t size = read_at<uint16_t>(body.data + at + 4);
    at += 6;
    if (body.size - at < size) refuse("ends within its words");
    const Bytes text = body.part(at, at + size);
    at += size;
    std::string word(reinterpret_cast<const char*>(text.data), size);
    if (!is_utf8(text)) refuse("has a word that is not UTF-8");
    if (!count || !keeps(word)) refuse("has a word without letters, without a count, too long, or with a line feed");
    if (model.vocabulary.find(word) >= 0 || !seen.insert(word).second) refuse("has a word twice, or one of the vocabulary");
    memories.words.push_back({std::move(word), count});
  }
  if (body.size - at != states * (4 + 2 * width)) refuse("has a size that does not fit what it claims to hold");
  for (size_t i = 0; i < states; ++i) {
    const auto id = read_at<int32_t>(body.data + at + 4 * i);
    if (id < 0 || id >= model.vocabulary.size() + int32_t(words)) refuse("refers to a word that it does not have");
    memories.following.push_back(id);
  }
  at += 4 * states;
  for (size_t i = 0; i < states * width; ++i) {
    const auto half = read_at<uint16_t>(body.data + at + 2 * i);
    if ((half & 0x7C00) == 0x7C00) refuse("has a state that is not finite");
    memories.states.push_back(half);
  }
  return memories;
}

Memories learn_text(const Model& model, const Memories& before, View32 text, size_t* tokens) {
  const Screen screen(model);
  Reader reader(screen.tokenizer());
  Tokens read = reader.take(text);
  for (Text32& token : reader.close()) read.push_back(std::move(token));
  *tokens = read.size();
  if (read.empty()) return before;
  const auto is_new = [&](const Text32& token) {
    return !screen.looks(token).empty() && model.vocabulary.find(encode_utf8(token)) < 0 && keeps(encode_utf8(token));
  };
  Counts counts({});
  for (const Text32& token : read)
    if (is_new(token)) counts.add(encode_utf8(token), 1);
  // Read only the last tokens: states depend on no more of them, and older states would not be kept.
  const auto tail = size_t(model.config.cache + reach(model));
  if (read.size() > tail) read.erase(read.begin(), read.begin() + std::ptrdiff_t(read.size() - tail));
  Session session(model);
  const int32_t line_end = screen.line_end(), unknown = session.added().unknown();
  session.feed(&line_end, 1);
  const std::vector<int32_t> ids = screen.ids_in(session, read);
  session.feed(ids.data(), int64_t(ids.size()));
  std::vector<Label> following;
  std::vector<uint16_t> states;
  std::vector<float> state(size_t(model.config.width));
  for (int64_t i = 0, count = session.remembered(); i < count; ++i) {
    const int32_t id = session.remembered(count - i, state.data());
    if (id == unknown) continue;
    Label label{id, {}};
    if (id >= model.vocabulary.size()) {
      label.word = session.added().word(id);
      if (!is_new(decode_utf8(label.word))) continue;
    }
    following.push_back(std::move(label));
    for (float value : state) states.push_back(to_half(std::min(std::max(value, -65504.0f), 65504.0f)));
  }
  return learned(model, before, counts.all(), following, states);
}

Memories learn_words(const Model& model, const Memories& before, const std::vector<CountedWord>& words) {
  const Screen screen(model);
  std::vector<CountedWord> taken;
  for (const CountedWord& word : words) {
    if (!word.count || !keeps(word.text) || model.vocabulary.find(word.text) >= 0) continue;
    const Text32 text = decode_utf8(word.text);
    Reader reader(screen.tokenizer());
    Tokens read = reader.take(text);
    for (Text32& token : reader.close()) read.push_back(std::move(token));
    if (read.size() == 1 && read[0] == text) taken.push_back(word);
  }
  return learned(model, before, taken, {}, {});
}

Tokens forms_of(const Screen& screen, const Text32& word) {
  Tokens forms;
  for (const Text32& form : {word, to_lower(word), capitalized(word), to_upper(word)})
    for (const Text32& text : {form, to_lower(form)})
      for (bool flip : {false, true}) {
        if (flip && !screen.tokenizer().marks()) continue;
        Text32 token = screen.tokenizer().marks() ? marked(flip, text) : text;
        if (std::find(forms.begin(), forms.end(), token) == forms.end()) forms.push_back(std::move(token));
      }
  return forms;
}

Memories forget_word(const Model& model, const Memories& before, const Text32& word, bool* found) {
  const Screen screen(model);
  const Text32 wanted = folded(word), small = to_lower(word);
  const auto is_it = [&](const std::string& text) {
    const Text32 look = screen.looks(decode_utf8(text));
    return !look.empty() && (folded(look) == wanted || to_lower(look) == small);
  };
  std::vector<CountedWord> words;
  std::unordered_set<std::string> gone;
  for (const CountedWord& one : before.words)
    if (is_it(one.text)) gone.insert(one.text);
    else words.push_back(one);
  std::unordered_set<int32_t> ids;
  for (const Text32& token : forms_of(screen, word)) ids.insert(model.vocabulary.find(encode_utf8(token)));
  for (const char* special : {"<unk>", "<eos>"}) ids.erase(model.vocabulary.find(special));
  ids.erase(-1);
  // No state depends on which new word was read, because the network reads all of them as <unk>. A word of the
  // vocabulary also influences the states after it.
  const std::vector<Label> labels = labels_of(model, before);
  std::vector<Label> left;
  std::vector<uint16_t> states;
  const auto width = size_t(model.config.width);
  size_t tainted = 0;  // the end of the states that are removed after a match
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].word.empty() && ids.count(labels[i].id)) tainted = std::max(tainted, i + 1 + size_t(reach(model)));
    if (i < tainted || gone.count(labels[i].word)) continue;
    left.push_back(labels[i]);
    states.insert(states.end(), before.states.begin() + std::ptrdiff_t(i * width),
                  before.states.begin() + std::ptrdiff_t((i + 1) * width));
  }
  *found = !gone.empty() || left.size() < labels.size();
  return put_together(model, std::move(words), left, states);
}

}  // namespace micronet

#endif
