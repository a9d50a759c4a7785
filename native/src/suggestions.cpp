#include "suggestions.hpp"

#include <algorithm>

namespace micronet {

namespace {

constexpr View32 kEnds = U".!?…。！？";  // tokens after which a sentence begins
// Lengths of a typed word, in letters: from which one error is searched for, from which two, and above which none.
constexpr size_t kOneError = 3, kTwoErrors = 6, kMostLetters = 64;
// The factor for a suggestion's probability when it is ranked, by the cost of its errors.
constexpr double kPenalty[] = {1, 0.1, 0.01, 0.001, 0.0001};
constexpr size_t kBeginnings = 4;  // the number of beginnings with errors that are completed, the cheapest first

// Return whether a sentence begins. After a line end this is unknown, and the model's own capitals are used.
bool begins_sentence(const Text32& before, bool spaced) {
  if (before.empty()) return true;
  return spaced && before != kLineEnd && kEnds.find(before.back()) != View32::npos;
}

Text32 with_capital(const Text32& word) { return word.empty() ? word : to_upper(View32(word).substr(0, 1)) + word.substr(1); }

struct Ranked {
  Word word;
  double rank;
};

template <class Items, class Key>
void sort_down(Items& items, Key key) {  // equal ones stay in order
  for (size_t i = 1; i < items.size(); ++i)
    for (size_t j = i; j && key(items[j]) > key(items[j - 1]); --j) std::swap(items[j], items[j - 1]);
}

#if !defined(__wasm__)
// Write a word that has only ASCII letters in small letters; return false for other words.
bool lower_ascii(std::string_view word, std::string& out) {
  out.assign(word.data(), word.size());
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = char(c + ('a' - 'A'));
    else if (c < 'a' || c > 'z') return false;
  }
  return !out.empty();
}
#endif

// Return a learned token without its mark, in small letters.
std::string small_letters(std::string_view token) { return encode_utf8(to_lower(unmark(decode_utf8(token)).text)); }

const Beginnings& known_beginnings(const Screen& screen) {
  const Model& model = screen.model();
  SharedBeginnings& shared = *model.beginnings;
  shared.made([&] {
    std::vector<std::string> words;
#if !defined(__wasm__)
    const std::string mark = encode_utf8(Text32(1, kFlip));
    std::string small;
#endif
    for (int32_t id = 0; id < model.vocabulary.size(); ++id) {
#if !defined(__wasm__)  // there a small module matters more than speed
      std::string_view token = model.vocabulary.word(id);
      if (screen.tokenizer().marks() && token.substr(0, mark.size()) == mark) token.remove_prefix(mark.size());
      if (lower_ascii(token, small)) {  // true for nearly all words
        words.push_back(small);
        continue;
      }
#endif
      const Text32 word = screen.looks(decode_utf8(model.vocabulary.word(id)));
      if (is_alpha(word)) words.push_back(encode_utf8(to_lower(word)));
    }
    shared.index = Beginnings(words);
  });
  return shared.index;
}

std::vector<Beginning> near(const Screen& screen, Session& session, const Text32& typed, int limit, Learned& learned) {
  std::vector<Beginning> found = known_beginnings(screen).near(typed, limit);
  if (session.added().size())
    for (Beginning& own : learned.beginnings(session).near(typed, limit)) {
      const auto same = [&](const Beginning& other) { return other.text == own.text; };
      const auto known = std::find_if(found.begin(), found.end(), same);
      if (known == found.end()) found.push_back(std::move(own));
      else known->cost = own.cost;
    }
  const std::string exact = encode_utf8(typed);  // words with exactly this beginning are already found
  found.erase(std::remove_if(found.begin(), found.end(), [&](const Beginning& one) { return one.text == exact; }),
              found.end());
  return found;
}

// Return likely words whose beginnings were typed with one error. If there are none, and no other suggestions either
// (`alone`), return those with two errors.
std::vector<Ranked> nearly(const Screen& screen, Session& session, const Text32& before, const Text32& typed, int64_t k,
                           bool alone, Learned& learned) {
  std::vector<Ranked> ranked;
  if (typed.size() < kOneError || typed.size() > kMostLetters || !is_alpha(typed)) return ranked;
  const Text32 small = to_lower(typed);
  std::vector<Beginning> found = near(screen, session, small, kError, learned);
  if (found.empty() && alone && typed.size() >= kTwoErrors) found = near(screen, session, small, 2 * kError, learned);
  sort_down(found, [](const Beginning& one) { return -one.cost; });
  if (found.size() > kBeginnings) found.resize(kBeginnings);
  for (const Beginning& beginning : found) {
    Text32 shown = decode_utf8(beginning.text);
    if (is_upper(View32(typed).substr(0, 1))) shown = with_capital(shown);
    if (typed.size() > 1 && is_upper(typed)) shown = to_upper(shown);
    for (Word& word : screen.completions(session, before, shown, k)) {
      const double rank = word.probability * kPenalty[beginning.cost];
      const auto same = [&](const Ranked& other) { return other.word.text == word.text; };
      const auto known = std::find_if(ranked.begin(), ranked.end(), same);
      if (known == ranked.end()) {
        if (rank > 0) ranked.push_back({std::move(word), rank});
      } else if (rank > known->rank) {
        *known = {std::move(word), rank};
      }
    }
  }
  sort_down(ranked, [](const Ranked& one) { return one.rank; });
  return ranked;
}

}  // namespace

const Beginnings& Learned::beginnings(const Session& session) {
  const AddedWords& added = session.added();
  const int32_t first = session.model().vocabulary.size();
  if (kRecollects && !count_ && session.recollections()) {
    // Recalled words are indexed once for all sessions. If nothing was read before, they are the first added words.
    const std::vector<CountedWord>& words = session.recollections()->words();
    const auto many = int32_t(words.size());
    if (many && added.size() >= many && added.word(first + many - 1) == words.back().text) {
      SharedBeginnings& shared = session.recollections()->beginnings();
      shared.made([&] {
        std::vector<std::string> small;
        for (const CountedWord& word : words) small.push_back(small_letters(word.text));
        small.erase(std::remove(small.begin(), small.end(), std::string()), small.end());
        shared.index = Beginnings(small);
      });
      index_ = shared.index;
      count_ = many;
    }
  }
#if defined(__wasm__)  // there a small module matters more than speed
  if (added.size() == count_) return index_;
  std::vector<std::string> words;
  for (count_ = 0; count_ < added.size(); ++count_) words.push_back(small_letters(added.word(first + count_)));
  index_ = Beginnings(words);
#else
  for (; count_ < added.size(); ++count_) {
    const std::string word = small_letters(added.word(first + count_));
    if (!word.empty()) index_.add(word);
  }
#endif
  return index_;
}

Suggestions suggest_next(const Screen& screen, Session& session, const Text32& before, int64_t k, bool spaced) {
  if (!begins_sentence(before, spaced)) return {screen.next_words(session, before, k), {}};
  std::vector<Word> words;
  for (Word& word : screen.next_words(session, before, k < 1 ? k : 2 * k + 2)) {
    // A word in small letters gets a capital at the beginning of a sentence.
    if (is_alpha(word.text) && is_lower(word.text)) word.text = with_capital(word.text);
    const auto same = [&](const Word& other) { return other.text == word.text; };
    const auto known = std::find_if(words.begin(), words.end(), same);
    if (known == words.end()) words.push_back(std::move(word));
    else known->probability += word.probability;
  }
  sort_down(words, [](const Word& word) { return word.probability; });
  if (int64_t(words.size()) > k) words.resize(size_t(k));
  return {std::move(words), {}};
}

Suggestions suggest_completions(const Screen& screen, Session& session, const Text32& before, const Text32& typed,
                                int64_t k, Learned& learned) {
  std::vector<Word> words = screen.completions(session, before, typed, k);
  const size_t exact = words.size();
  if (int64_t(exact) < k)
    for (Ranked& more : nearly(screen, session, before, typed, k, !exact, learned)) {
      if (int64_t(words.size()) == k) break;
      const auto same = [&](const Word& other) { return other.text == more.word.text; };
      if (std::none_of(words.begin(), words.begin() + int64_t(exact), same)) words.push_back(std::move(more.word));
    }
  return {std::move(words), typed};
}

}  // namespace micronet
