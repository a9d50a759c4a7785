// Tokens as words on a screen: which of them can be shown after a text, and how they look (runtime/screen.py).
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "session.hpp"
#include "tokenizers.hpp"

namespace micronet {

struct Word {
  Text32 text;
  double probability;
};

class Screen {
 public:
  explicit Screen(const Model& model);  // throws Failure where the model reads no text

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Model& model() const { return *model_; }
  int32_t line_end() const { return line_end_; }
  int32_t id_of(const Text32& token) const;  // that of <unk> for unknown ones
  // The ids of tokens that a session reads next; where the model has a cache, the session adds words that it lacks.
  std::vector<int32_t> ids_in(Session& session, const Tokens& tokens) const;
  static Text32 token_of(const Session& session, int32_t id);

  // The word that a token looks like; nothing for <unk>, <eos> and lone marks.
  Text32 looks(const Text32& token) const;
  // Whether a token can be shown after another (nothing: at the beginning of a text). It can when the two, put
  // together to text, are read as the same two tokens.
  bool fits(const Text32& before, const Text32& token) const;
  // Whether it can be written there; a line's end can.
  bool shows(const Text32& before, const Text32& token) const;
  // What a token adds to a text that ends in another one, its space included.
  Text32 piece(const Text32& before, const Text32& token) const;

  // The k likeliest words and their probabilities; those that begin with a prefix, in small letters or capitals.
  std::vector<Word> next_words(Session& session, const Text32& before, int64_t k) const;
  std::vector<Word> completions(Session& session, const Text32& before, const Text32& prefix, int64_t k) const;

 private:
  using Ask = std::function<std::vector<Candidate>(int64_t count)>;
  struct Chance {
    int32_t id;
    double probability;
  };
  using Show = std::function<Text32(const Text32& word)>;
  std::vector<Word> best(Session& session, const Text32& before, int64_t k, const std::vector<Ask>& asks,
                         const Show& shown) const;
  // The probability of all tokens that look like a word.
  double chance(Session& session, const Text32& before, const Text32& word,
                const std::vector<Chance>& chances, const Show& shown) const;

  const Model* model_;
  const Tokenizer* tokenizer_;
  int32_t unknown_, line_end_;
};

}  // namespace micronet
