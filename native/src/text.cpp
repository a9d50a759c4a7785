#include "text.hpp"

#include <cmath>
#include <limits>

#include "checksum.hpp"
#include "saving.hpp"
#include "scoring.hpp"
#include "status.hpp"

namespace micronet {

namespace {

constexpr char kMagic[] = "micronet state 2\n";
constexpr char kUnchecked[] = "micronet state 1\n";  // what version 0.1 saved, without a checksum
constexpr size_t kMagicSize = sizeof kMagic - 1, kSumSize = sizeof(uint64_t);
constexpr int kTries = 32;  // draws for a token that can be shown; after these the likeliest such token is taken

// Return what is behind the magic bytes and the checksum, which is compared: at least 4 bytes.
Bytes body_of(Bytes saved) {
  const bool known = saved.size >= kMagicSize + 4;
  if (known && std::memcmp(saved.data, kUnchecked, kMagicSize) == 0) return saved.part(kMagicSize, saved.size);
  if (!known || saved.size < kMagicSize + kSumSize + 4 || std::memcmp(saved.data, kMagic, kMagicSize) != 0)
    fail(MN_ERROR_FORMAT, "these %zu bytes are not a saved text; save it again", saved.size);
  const Bytes body = saved.part(kMagicSize + kSumSize, saved.size);
  if (read_at<uint64_t>(saved.data + kMagicSize) != checksum(body))
    fail(MN_ERROR_FORMAT, "the saved text of %zu bytes is damaged; save it again", saved.size);
  return body;
}

}  // namespace

Text::Text(const Model& model) : screen_(model), session_(model), reader_(screen_.tokenizer()) {}

Text::Text(const Text& other)
    : screen_(other.screen_), session_(other.session_), reader_(other.reader_), random_(other.random_) {}

int64_t Text::tokens() const { return session_.tokens() + int64_t(reader_.open().size()); }

void Text::feed(const Tokens& tokens) {
  asked_.reset();
  const std::vector<int32_t> ids = screen_.ids_in(session_, tokens);
  session_.feed(ids.data(), int64_t(ids.size()));
}

void Text::feed(View32 text) {
  Reader reader = reader_;  // an error leaves this text as it was
  feed(reader.take(text));
  reader_ = std::move(reader);
}

void Text::settle() {
  Reader reader = reader_;
  feed(reader.close());
  reader_ = std::move(reader);
}

std::pair<Session*, Text32> Text::now() {
  const Tokens open = reader_.open();
  if (open.empty()) return {&session_, reader_.place().last};
  if (!asked_) {
    auto asked = std::make_unique<Session>(session_);
    const std::vector<int32_t> ids = screen_.ids_in(*asked, open);
    asked->feed(ids.data(), int64_t(ids.size()));
    asked_ = std::move(asked);
  }
  return {asked_.get(), open.back()};
}

std::vector<Word> Text::next_words(int64_t k) {
  const auto [session, before] = now();
  return screen_.next_words(*session, before, k);
}

std::vector<Word> Text::complete(const Text32& prefix, int64_t k) {
  const auto [session, before] = now();
  return screen_.completions(*session, before, prefix, k);
}

Suggestions Text::suggest(int64_t k) {
  Tokens whole = reader_.open();
  Text32 word = whole.empty() ? Text32() : screen_.looks(whole.back());
  if (reader_.ends_in_space() || word.empty() || !is_alphanumeric(word.back())) word.clear();
  else whole.pop_back();
  Text32 before = reader_.place().last;
  Session* session = &session_;
  std::unique_ptr<Session> copy;
  if (!whole.empty() || !session_.tokens()) {
    copy = std::make_unique<Session>(session_);
    session = copy.get();
    if (!whole.empty()) before = whole.back();
    std::vector<int32_t> ids = screen_.ids_in(*session, whole);
    if (ids.empty()) ids = {screen_.line_end()};
    session->feed(ids.data(), int64_t(ids.size()));
  }
  if (word.empty()) return suggest_next(screen_, *session, before, k, reader_.ends_in_space());
  Learned once;  // the copy may have learned more words than this text
  return suggest_completions(screen_, *session, before, word, k, copy ? once : learned_);
}

void Text::recall(std::shared_ptr<const Recollections> recollections) {
  session_.recall(std::move(recollections));
  asked_.reset();
  learned_ = {};
}

void Text::forget(const Tokens& forms) {
  for (const Text32& token : forms) session_.drop_word(encode_utf8(token));
  asked_.reset();
  learned_ = {};
}

Text32 Text::write(double temperature, int64_t top_k, double top_p) {
  const bool spaced = reader_.ends_in_space();
  settle();
  const Text32 before = reader_.place().last;
  const int32_t id = choose(temperature, top_k, top_p);
  const Text32 token = Screen::token_of(session_, id);
  Text32 piece = screen_.piece(before, token);
  if (spaced && !piece.empty() && piece[0] == ' ') piece.erase(0, 1);
  session_.feed(&id, 1);
  asked_.reset();
  reader_.take_word(token);
  return piece;
}

int32_t Text::choose(double temperature, int64_t top_k, double top_p) {
  if (temperature == 0) return likeliest();
  for (int i = 0; i < kTries; ++i) {
    const int32_t id = session_.sample(random_.next(), temperature, top_k, top_p);
    if (screen_.shows(reader_.place().last, Screen::token_of(session_, id))) return id;
  }
  return likeliest();
}

int32_t Text::likeliest() {
  const int64_t size = session_.model().vocabulary.size();
  for (int64_t count = 8;; count *= 8) {
    for (const Candidate& candidate : session_.top_k(std::min(count, size)))
      if (screen_.shows(reader_.place().last, Screen::token_of(session_, candidate.id))) return candidate.id;
    if (count >= size) fail(MN_ERROR_STATE, "the model has no word that can be shown here; feed it another text");
  }
}

std::string Text::save() const {
  const std::string place = reader_.place().to_json();
  std::string saved(kMagic, kMagicSize);
  saved.resize(kMagicSize + kSumSize);
  for (int shift = 0; shift < 32; shift += 8) saved += char(place.size() >> shift);
  saved += place;
  const size_t begin = saved.size();
  saved.resize(begin + saved_size(session_));
  micronet::save(session_, reinterpret_cast<uint8_t*>(&saved[begin]));
  const uint64_t sum = checksum({reinterpret_cast<const uint8_t*>(saved.data()) + kMagicSize + kSumSize,
                                 saved.size() - kMagicSize - kSumSize});
  std::memcpy(&saved[kMagicSize], &sum, kSumSize);
  return saved;
}

Text Text::restore(const Model& model, Bytes saved) {
  const Bytes body = body_of(saved);
  const auto size = read_at<uint32_t>(body.data);
  if (size > body.size - 4)
    fail(MN_ERROR_FORMAT, "the saved text of %zu bytes is truncated; save it again", saved.size);
  Text text(model);
  text.reader_ = Reader(text.screen_.tokenizer(),
                        Place::from_json({reinterpret_cast<const char*>(body.data) + 4, size}));
  text.session_ = micronet::restore(model, body.part(4 + size, body.size));
  return text;
}

Text read_text(const Model& model, View32 given) {
  Text text(model);
  text.feed(given);
  text.settle();
  if (!text.tokens()) text.feed(View32(U"\n"));
  return text;
}

std::vector<ScoredToken> score_text(const Model& model, View32 text, int threads) {
  const Screen screen(model);
  Reader reader(screen.tokenizer());
  Tokens tokens = reader.take(text);
  for (Text32& token : reader.close()) tokens.push_back(std::move(token));
  std::vector<int32_t> ids;
  for (const Text32& token : tokens) ids.push_back(screen.id_of(token));
  std::vector<float> scores(ids.empty() ? 0 : ids.size() - 1);
  score(model, ids.data(), int64_t(ids.size()), threads, scores.data());
  std::vector<ScoredToken> scored;
  for (size_t i = 0; i < tokens.size(); ++i)
    scored.push_back({decode_utf8(model.vocabulary.word(ids[i])), screen.piece(i ? tokens[i - 1] : Text32(), tokens[i]),
                      i ? scores[i - 1] : std::numeric_limits<float>::quiet_NaN()});
  return scored;
}

}  // namespace micronet
