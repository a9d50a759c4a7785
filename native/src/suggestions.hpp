// Suggestions for someone who types: whole words, and the part of the text that they replace (runtime/suggestions.py).
#pragma once

#include "screen.hpp"
#include "typos.hpp"

namespace micronet {

struct Suggestions {
  std::vector<Word> words;
  Text32 replaces;  // the word that is being typed; empty if a new word begins
};

// The words that one session has learned, indexed on first use.
class Learned {
 public:
  const Beginnings& beginnings(const Session& session);

 private:
  int32_t count_ = 0;  // words of the session that are indexed
  Beginnings index_;
};

// Return the k likeliest next words, capitalized if a sentence begins. `spaced`: the text ends in white space.
Suggestions suggest_next(const Screen& screen, Session& session, const Text32& before, int64_t k, bool spaced);

// Return the k likeliest words that begin as typed, followed by those that do with typing errors.
Suggestions suggest_completions(const Screen& screen, Session& session, const Text32& before, const Text32& typed,
                                int64_t k, Learned& learned);

}  // namespace micronet
