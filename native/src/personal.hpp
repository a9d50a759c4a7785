// What is remembered of a person's texts: its bytes, and how it changes (runtime/lessons.py, runtime/personal_file.py).
#pragma once

#include <string>
#include <vector>

#include "bytes.hpp"
#include "reading.hpp"
#include "recollections.hpp"
#include "screen.hpp"

namespace micronet {

struct Memories {
  std::vector<CountedWord> words;  // outside the vocabulary; the one that was read last is last
  std::vector<int32_t> following;  // the word after each state: an id, or the vocabulary's size + the word's place
  std::vector<uint16_t> states;    // (following.size(), width) in half precision, the newest last
};

constexpr size_t kMostWords = 4096, kLongestWord = 128;

// The size of the largest file.
size_t most_bytes(const Model& model);
std::string encode_memories(const Model& model, const Memories& memories);
// Reads what encode_memories gave; throws Failure for anything else. The message has no subject.
Memories decode_memories(const Model& model, Bytes file);

// Memories after a text was read, and the number of its tokens.
Memories learn_text(const Model& model, const Memories& before, View32 text, size_t* tokens);
// Memories with words that another memory counted.
Memories learn_words(const Model& model, const Memories& before, const std::vector<CountedWord>& words);
// Memories without a word, in small letters and capitals.
Memories forget_word(const Model& model, const Memories& before, const Text32& word, bool* found);

// The tokens that may look like a word, in small letters and capitals.
Tokens forms_of(const Screen& screen, const Text32& word);

}  // namespace micronet
