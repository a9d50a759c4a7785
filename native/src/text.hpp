// A text that is read piece by piece and can predict the next word at any time (runtime/state.py).
#pragma once

#include <memory>

#include "random.hpp"
#include "reading.hpp"
#include "suggestions.hpp"

namespace micronet {

// A scored token: the model's word, what it adds to the text, and its log-probability (NaN for the first).
struct ScoredToken {
  Text32 token, piece;
  float log_probability;
};

class Text {
 public:
  explicit Text(const Model& model);
  Text(const Text& other);

  const Screen& screen() const { return screen_; }
  int64_t tokens() const;  // the number of tokens read so far
  void feed(View32 text);
  void settle();  // treats the last word as complete, as if white space followed it
  std::vector<Word> next_words(int64_t k);
  std::vector<Word> complete(const Text32& prefix, int64_t k);
  // Return suggestions for someone who types. After an incomplete word: words that begin like it and, if these are few,
  // words that do with typing errors. Otherwise: next words, capitalized at the beginning of a sentence.
  Suggestions suggest(int64_t k);
  // Mix recollections into all predictions; null ends this.
  void recall(std::shared_ptr<const Recollections> recollections);
  // Remove a word from what this text has learned, in lower and upper case.
  void forget(const Tokens& forms);
  void seed(uint64_t seed) { random_ = Random(seed); }
  // Choose a word and read it; return what it adds to the text. A temperature of 0 takes the likeliest word.
  Text32 write(double temperature, int64_t top_k, double top_p);

  std::string save() const;  // the same bytes as State.save in Python
  static Text restore(const Model& model, Bytes saved);

 private:
  void feed(const Tokens& tokens);
  // A session that has read everything, and the last token.
  std::pair<Session*, Text32> now();
  int32_t choose(double temperature, int64_t top_k, double top_p);
  int32_t likeliest();

  Screen screen_;
  Session session_;
  Reader reader_;
  Learned learned_;
  std::unique_ptr<Session> asked_;  // has also read the pending text
  Random random_;
};

// Return a text that is ready for predictions: all of it is read, or a line end if it is empty.
Text read_text(const Model& model, View32 text);

std::vector<ScoredToken> score_text(const Model& model, View32 text, int threads);

}  // namespace micronet
