// A text that is read piece by piece and can be asked for the next word at any time (runtime/state.py).
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
  int64_t tokens() const;  // read so far
  void feed(View32 text);
  void settle();  // takes the last word for whole, as white space after it would
  std::vector<Word> next_words(int64_t k);
  std::vector<Word> complete(const Text32& prefix, int64_t k);
  // For someone who types: after a word that has no end yet words that begin like it, or nearly so where few do; else
  // next words, with a capital at the beginning of a sentence.
  Suggestions suggest(int64_t k);
  // Mixes recollections into all predictions; null ends it.
  void recall(std::shared_ptr<const Recollections> recollections);
  // Takes a word out of what this text has learned, in small letters and capitals.
  void forget(const Tokens& forms);
  void seed(uint64_t seed) { random_ = Random(seed); }
  // Chooses a word and reads it; gives what it adds to the text. A temperature of 0 takes the likeliest.
  Text32 write(double temperature, int64_t top_k, double top_p);

  std::string save() const;  // what State.save of Python gives
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
  std::unique_ptr<Session> asked_;  // has read what is pending, too
  Random random_;
};

// A text after which words are asked for: all of it read, and a line's end where it is empty.
Text read_text(const Model& model, View32 text);

std::vector<ScoredToken> score_text(const Model& model, View32 text, int threads);

}  // namespace micronet
