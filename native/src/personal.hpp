// The contents of a personal memory: its bytes, and how it changes (runtime/lessons.py, runtime/personal_file.py).
#pragma once

#include <string>
#include <vector>

#include "bytes.hpp"
#include "reading.hpp"
#include "recollections.hpp"
#include "screen.hpp"

namespace micronet {

struct Memories {
  std::vector<CountedWord> words;  // outside the vocabulary, in the order in which they were last read
  std::vector<int32_t> following;  // the word after each state: an id, or the vocabulary's size + its index in `words`
  std::vector<uint16_t> states;    // (following.size(), width) in half precision, the newest last
};

constexpr size_t kMostWords = 4096, kLongestWord = 128;

// Return the size of the largest file.
size_t most_bytes(const Model& model);
std::string encode_memories(const Model& model, const Memories& memories);
// Read the bytes that encode_memories returned; throws Failure for anything else. The message has no subject, so that
// the caller can put the file's name before it.
Memories decode_memories(const Model& model, Bytes file);

// Return the memories after a text was read, and the number of its tokens.
Memories learn_text(const Model& model, const Memories& before, View32 text, size_t* tokens);
// Return the memories with the counted words of another memory added.
Memories learn_words(const Model& model, const Memories& before, const std::vector<CountedWord>& words);
// Return the memories without a word, in lower and upper case.
Memories forget_word(const Model& model, const Memories& before, const Text32& word, bool* found);

// Return the tokens that may be displayed as a word, in lower and upper case.
Tokens forms_of(const Screen& screen, const Text32& word);

}  // namespace micronet
