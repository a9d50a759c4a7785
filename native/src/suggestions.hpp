// Suggestions for someone who types: whole words, and what of the text they replace (runtime/suggestions.py).
#pragma once

#include "screen.hpp"
#include "typos.hpp"

namespace micronet {

struct Suggestions {
  std::vector<Word> words;
  Text32 replaces;  // the word that is being typed, nothing where the next one begins
};

// The words that one session has learned, indexed when they are asked for.
class Learned {
 public:
  const Beginnings& beginnings(const Session& session);

 private:
  int32_t count_ = 0;  // words of the session that are indexed
  Beginnings index_;
};

// The k likeliest next words; with a capital where a sentence begins. `spaced`: the text ends in white space.
Suggestions suggest_next(const Screen& screen, Session& session, const Text32& before, int64_t k, bool spaced);

// The k likeliest words that begin as typed, then those that nearly do.
Suggestions suggest_completions(const Screen& screen, Session& session, const Text32& before, const Text32& typed,
                                int64_t k, Learned& learned);

}  // namespace micronet
