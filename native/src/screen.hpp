// Tokens as words on a screen: which of them can be shown after a text, and how they are displayed
// (runtime/screen.py).
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
  explicit Screen(const Model& model);  // throws Failure if the model cannot read text

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Model& model() const { return *model_; }
  int32_t line_end() const { return line_end_; }
  int32_t id_of(const Text32& token) const;  // the id of <unk> for an unknown token
  // Return the ids of tokens that a session reads next. If the model has a cache, add unknown words to the session.
  std::vector<int32_t> ids_in(Session& session, const Tokens& tokens) const;
  static Text32 token_of(const Session& session, int32_t id);

  // Return the word that a token is displayed as; empty for <unk>, <eos> and marks without a word.
  Text32 looks(const Text32& token) const;
  // Return whether a token can follow another one (empty at the beginning of a text). It can if the two, joined to
  // text, are read as the same two tokens.
  bool fits(const Text32& before, const Text32& token) const;
  // Return whether a token can be written there: it must be a line end, or be displayed as a word.
  bool shows(const Text32& before, const Text32& token) const;
  // Return what a token adds to a text that ends in another one, including its space.
  Text32 piece(const Text32& before, const Text32& token) const;

  // Return the k likeliest words and their probabilities; or those that begin with a prefix, in lower or upper case.
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
  // Return the probability of all tokens that are displayed as a word.
  double chance(Session& session, const Text32& before, const Text32& word,
                const std::vector<Chance>& chances, const Show& shown) const;

  const Model* model_;
  const Tokenizer* tokenizer_;
  int32_t unknown_, line_end_;
};

}  // namespace micronet
