// From text to tokens and back, with the same results as corpus/tokenizers.py.
#pragma once

#include <string>
#include <vector>

#include "unicode.hpp"

namespace micronet {

constexpr char32_t kFlip = 0xFFED;  // the mark of a token whose spacing differs from the default
inline const Text32 kLineEnd = U"<eos>", kUnknown = U"<unk>";

using Tokens = std::vector<Text32>;

// A newline is the token <eos>. No token is empty or holds white space, the lines of a text are split
// independently, and join(a + b) begins with join(a).
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Return whether tokens have marks.
  virtual bool marks() const { return true; }
  // Split text that follows the character `after`: a newline, or another.
  virtual Tokens tokens(View32 text, char32_t after) const = 0;
  virtual Text32 join(const Tokens& tokens) const = 0;
  // Return how much of a text has the same tokens whatever is written after it.
  virtual size_t settled(View32 text) const = 0;
};

// Return a tokenizer by its name in a packed file: "wikitext", "word" or "word-2"; null for another name.
const Tokenizer* find_tokenizer(const std::string& name);

// In tokenizer_word.cpp and tokenizer_word2.cpp.
const Tokenizer& word_tokenizer();
const Tokenizer& unicode_word_tokenizer();

// A token without its mark.
struct Unmarked {
  bool flipped;
  Text32 text;
};
Unmarked unmark(const Text32& token);
// Return the text of a token, with or without the mark. The mark's own character is written with one additional mark.
Text32 marked(bool flip, View32 text);

}  // namespace micronet
