// A reader of a text that arrives in pieces, which may end anywhere. It returns tokens as soon as later text cannot
// change them (runtime/reading.py).
#pragma once

#include "tokenizers.hpp"

namespace micronet {

// How far a text has been read.
struct Place {
  Text32 pending;         // text whose tokens may still change, such as an incomplete word
  Text32 last;            // the last settled token; empty if there is none
  bool begins = true;     // whether only white space was read so far
  bool boundary = false;  // whether a word begins next, whatever the spacing, because a word was read instead of text

  std::string to_json() const;                      // as Python's json writes it
  static Place from_json(std::string_view text);    // throws Failure
};

class Reader {
 public:
  explicit Reader(const Tokenizer& tokenizer, Place place = {}) : tokenizer_(&tokenizer), place_(std::move(place)) {}

  const Place& place() const { return place_; }
  // Read a piece and return the tokens that it settles.
  Tokens take(View32 piece);
  // Return the tokens of the pending text, as if the text ended here.
  Tokens open() const;
  // Settle the pending text and return its tokens.
  Tokens close();
  // Record that a word was read after everything that is settled.
  void take_word(const Text32& word);
  // Return whether the text ends in white space, so that the next word needs none.
  bool ends_in_space() const { return !place_.pending.empty() && is_space(place_.pending.back()); }

 private:
  char32_t after() const;
  Tokens settle(size_t cut);
  bool spaced_by_default(View32 piece) const;

  const Tokenizer* tokenizer_;
  Place place_;
};

}  // namespace micronet
