#include "screen.hpp"

#include <algorithm>
#include <cmath>

#include "status.hpp"

namespace micronet {

namespace {

constexpr double kVariants = 4;  // the most tokens that are displayed as the same word
constexpr int64_t kAlike = 32;    // the fewest tokens to ask for among those with the same beginning

void add_once(std::vector<Text32>& texts, Text32 text) {
  if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
}

// Return a word in the case in which its beginning was typed: `ret` finds `Return`, and after `Ret` or `RET` the word
// `return` becomes `Return` or `RETURN`.
Text32 in_case_of(const Text32& prefix, const Text32& word) {
  if (word.compare(0, prefix.size(), prefix) == 0 || word != to_lower(word)) return word;
  if (prefix.size() > 1 && is_upper(prefix)) return to_upper(word);
  return prefix + (prefix.size() < word.size() ? word.substr(prefix.size()) : Text32());
}

}  // namespace

Screen::Screen(const Model& model)
    : model_(&model),
      tokenizer_(find_tokenizer(model.config.tokenizer)),
      unknown_(model.vocabulary.find("<unk>")),
      line_end_(model.vocabulary.find("<eos>")) {
  if (unknown_ < 0 || line_end_ < 0)
    fail(MN_ERROR_FORMAT, "the model's vocabulary lacks '%s', so it reads no text; ask it by word ids",
         unknown_ < 0 ? "<unk>" : "<eos>");
}

int32_t Screen::id_of(const Text32& token) const {
  const int32_t id = model_->vocabulary.find(encode_utf8(token));
  return id < 0 ? unknown_ : id;
}

std::vector<int32_t> Screen::ids_in(Session& session, const Tokens& tokens) const {
  std::vector<int32_t> ids;
  for (const Text32& token : tokens) {
    int32_t id = id_of(token);
    if (id == unknown_ && model_->config.cache && token != kUnknown) id = session.added().add(encode_utf8(token));
    ids.push_back(id);
  }
  return ids;
}

Text32 Screen::token_of(const Session& session, int32_t id) {
  const Vocabulary& known = session.model().vocabulary;
  return decode_utf8(id < known.size() ? known.word(id) : session.added().word(id));
}

Text32 Screen::looks(const Text32& token) const {
  if (token == kUnknown || token == kLineEnd) return {};
  return tokenizer_->marks() ? unmark(token).text : token;
}

bool Screen::fits(const Text32& before, const Text32& token) const {
  if (token == kLineEnd) return true;
  const Tokens read = tokenizer_->tokens(tokenizer_->join({before.empty() ? kLineEnd : before, token}), '\n');
  return read.size() == 2 && read[1] == token;
}

bool Screen::shows(const Text32& before, const Text32& token) const {
  return (token == kLineEnd || !looks(token).empty()) && fits(before, token);
}

Text32 Screen::piece(const Text32& before, const Text32& token) const {
  if (before.empty()) return tokenizer_->join({token});
  return tokenizer_->join({before, token}).substr(tokenizer_->join({before}).size());
}

std::vector<Word> Screen::next_words(Session& session, const Text32& before, int64_t k) const {
  return best(session, before, k, {[&](int64_t count) { return session.top_k(count); }},
              [](const Text32& word) { return word; });
}

std::vector<Word> Screen::completions(Session& session, const Text32& before, const Text32& prefix, int64_t k) const {
  std::vector<Text32> starts;
  for (Text32 start : {prefix, to_lower(prefix), capitalized(prefix), to_upper(prefix)}) add_once(starts, start);
  std::vector<Ask> asks;
  for (bool flip : {false, true}) {
    if (flip && (!tokenizer_->marks() || prefix.empty())) continue;
    for (const Text32& start : starts)
      asks.push_back([&session, text = encode_utf8(Text32(size_t(flip), kFlip) + start)](int64_t count) {
        return session.complete(text, count);
      });
  }
  return best(session, before, k, asks, [&](const Text32& word) {
    // Searching for the mark alone also finds tokens of the mark and a word, which are not displayed with the mark.
    const auto begins = [&](const Text32& start) { return word.compare(0, start.size(), start) == 0; };
    return std::any_of(starts.begin(), starts.end(), begins) ? in_case_of(prefix, word) : Text32();
  });
}

std::vector<Word> Screen::best(Session& session, const Text32& before, int64_t k, const std::vector<Ask>& asks,
                               const Show& shown) const {
  if (k < 1) fail(MN_ERROR_ARGUMENT, "k must be 1 or more, got %lld", static_cast<long long>(k));
  const int64_t size = model_->vocabulary.size();
  // Many words with the same beginning are nearly as likely as each other, and asking for a few more costs nothing.
  int64_t count = std::min(std::max(2 * k + 6, asks.size() > 1 ? kAlike : 0), size);
  for (;;) {
    std::vector<Chance> chances;
    std::vector<Candidate> order;  // by probability, with places in `chances` instead of ids
    double floor = 0;  // no token outside `chances` is likelier than this
    for (const Ask& ask : asks) {
      const std::vector<Candidate> given = ask(count);
      for (const Candidate& candidate : given) {
        order.push_back({candidate.log_probability, int32_t(chances.size())});
        chances.push_back({candidate.id, std::exp(double(candidate.log_probability))});
      }
      if (int64_t(given.size()) == count && count < size)
        floor = std::max(floor, std::exp(double(given.back().log_probability)));
    }
    std::make_heap(order.begin(), order.end());
    std::sort_heap(order.begin(), order.end());
    std::vector<Word> words;  // the likeliest first
    for (const Candidate& next : order) {
      const Chance& entry = chances[size_t(next.id)];
      // Neither this token nor a later one can give a word that is better than the k-th.
      if (int64_t(words.size()) >= k && kVariants * entry.probability < words[size_t(k - 1)].probability) break;
      const Text32 token = token_of(session, entry.id), look = looks(token), word = shown(look);
      const auto same = [&](const Word& other) { return other.text == word; };
      if (word.empty() || std::any_of(words.begin(), words.end(), same) || !fits(before, token)) continue;
      words.push_back({word, chance(session, before, word, chances, shown)});
      // Insertion sort: tokens come in order, so few swaps are needed.
      for (size_t i = words.size() - 1; i && words[i].probability > words[i - 1].probability; --i)
        std::swap(words[i], words[i - 1]);
    }
    if (int64_t(words.size()) > k) words.resize(size_t(k));
    if (floor == 0 || (int64_t(words.size()) == k && words.back().probability >= kVariants * floor)) return words;
    count = std::min(4 * count, size);
  }
}

double Screen::chance(Session& session, const Text32& before, const Text32& word,
                      const std::vector<Chance>& chances, const Show& shown) const {
  std::vector<Text32> variants;
  for (const Text32& text : {word, to_lower(word)})
    for (bool flip : {false, true})
      if (tokenizer_->marks()) add_once(variants, marked(flip, text));
      else if (!flip) add_once(variants, text);
  double total = 0;
  for (const Text32& token : variants) {
    const int32_t id = session.added().find(encode_utf8(token));
    if (id < 0 || shown(looks(token)) != word || !fits(before, token)) continue;
    const auto known = std::find_if(chances.begin(), chances.end(), [&](const Chance& entry) { return entry.id == id; });
    total += known == chances.end() ? std::exp(double(session.log_probability(id))) : known->probability;
  }
  return total;
}

}  // namespace micronet
