#include "tokenizers.hpp"

namespace micronet {

namespace {

// A tokenizer for text that already consists of tokens: splits at white space.
class WikiTextTokenizer : public Tokenizer {
 public:
  bool marks() const override { return false; }

  Tokens tokens(View32 text, char32_t) const override {
    Tokens tokens;
    Text32 word;
    for (char32_t c : text) {
      if (!is_space(c)) {
        word += c;
        continue;
      }
      if (!word.empty()) tokens.push_back(std::move(word));
      word.clear();
      if (c == '\n') tokens.push_back(kLineEnd);
    }
    if (!word.empty()) tokens.push_back(std::move(word));
    return tokens;
  }

  Text32 join(const Tokens& tokens) const override {
    Text32 text;
    bool begins = true;  // a line
    for (const Text32& token : tokens) {
      if (token == kLineEnd) {
        text += '\n';
      } else {
        if (!begins) text += ' ';
        text += token;
      }
      begins = token == kLineEnd;
    }
    return text;
  }

  size_t settled(View32 text) const override {
    size_t place = text.size();
    while (place && !is_space(text[place - 1])) --place;
    return place;
  }
};

}  // namespace

const Tokenizer* find_tokenizer(const std::string& name) {
  static const WikiTextTokenizer wikitext;
  if (name == "wikitext") return &wikitext;
  if (name == "word") return &word_tokenizer();
  if (name == "word-2") return &unicode_word_tokenizer();
  return nullptr;
}

Unmarked unmark(const Text32& token) {
  if (token.empty() || token[0] != kFlip) return {false, token};
  if (token.size() == 1) return {true, {}};
  if (token == Text32(2, kFlip)) return {false, Text32(1, kFlip)};
  if (token == Text32(3, kFlip)) return {true, Text32(1, kFlip)};
  return {true, token.substr(1)};
}

Text32 marked(bool flip, View32 text) {
  const bool own = text.size() == 1 && text[0] == kFlip;
  return Text32(size_t(flip) + size_t(own), kFlip).append(text);
}

}  // namespace micronet
