// A text that arrives in pieces, cut anywhere: its tokens, as soon as nothing can change them (runtime/reading.py).
#pragma once

#include "tokenizers.hpp"

namespace micronet {

// Where a text stands.
struct Place {
  Text32 pending;         // text whose tokens may still change, such as a word that has no end yet
  Text32 last;            // the last token that is settled; empty where the text has none
  bool begins = true;     // whether only white space was read so far
  bool boundary = false;  // whether a word begins next, whatever the spacing: words were read, not text

  std::string to_json() const;                      // as Python's json writes it
  static Place from_json(std::string_view text);    // throws Failure
};

class Reader {
 public:
  explicit Reader(const Tokenizer& tokenizer, Place place = {}) : tokenizer_(&tokenizer), place_(std::move(place)) {}

  const Place& place() const { return place_; }
  // Reads a piece; gives the tokens that are settled with it.
  Tokens take(View32 piece);
  // The tokens of what is pending, as if the text ended here.
  Tokens open() const;
  // Settles what is pending; gives its tokens.
  Tokens close();
  // Notes that a word was read after everything that is settled.
  void take_word(const Text32& word);
  // Whether the text ends in white space: the next word needs none.
  bool ends_in_space() const { return !place_.pending.empty() && is_space(place_.pending.back()); }

 private:
  char32_t after() const;
  Tokens settle(size_t cut);
  bool spaced_by_default(View32 piece) const;

  const Tokenizer* tokenizer_;
  Place place_;
};

}  // namespace micronet
