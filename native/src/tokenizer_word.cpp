// Version 1 of the tokenizer `word` (corpus/words.py): words, numbers and runs of punctuation.
#include "tokenizers.hpp"

namespace micronet {

namespace {

bool is_opening(char32_t c) { return c == '(' || c == '[' || c == '{'; }
bool is_closing(char32_t c) { return View32(U",.;:!?)]}%").find(c) != View32::npos; }
bool is_blank(char32_t c) { return c != '\n' && is_space(c); }

// Return whether a space separates two tokens without marks.
bool space_by_default(View32 before, View32 text) {
  if (text.empty() || before == U"\n" || is_opening(before.back())) return false;
  return !is_closing(text[0]);
}

template <class Is>
size_t skip(View32 text, size_t at, Is is) {
  while (at < text.size() && is(text[at])) ++at;
  return at;
}

// Return where a match of \d+(?:[.,]\d+)*(?!\w) ends, or `at` if it does not match. It has as many groups as possible
// without a letter after the last one.
size_t end_of_number(View32 text, size_t at) {
  size_t best = at, end = skip(text, at, is_decimal);
  if (end == at) return at;
  for (;;) {
    if (end == text.size() || !is_word(text[end])) best = end;
    if (end == text.size() || (text[end] != '.' && text[end] != ',')) return best;
    const size_t next = skip(text, end + 1, is_decimal);
    if (next == end + 1) return best;
    end = next;
  }
}

// Return where a match of \w+(?:['’]\w+)* ends, or `at` if it does not match.
size_t end_of_word(View32 text, size_t at) {
  size_t end = skip(text, at, is_word);
  while (end > at && end + 1 < text.size() && (text[end] == '\'' || text[end] == 0x2019) && is_word(text[end + 1]))
    end = skip(text, end + 1, is_word);
  return end;
}

class WordTokenizer : public Tokenizer {
 public:
  Tokens tokens(View32 following, char32_t after) const override {
    // The character before the text is split too; its token is removed again.
    const Text32 text = after + Text32(following);
    Tokens tokens;
    Text32 before = U"x";
    for (size_t at = 0; at < text.size();) {
      if (text[at] == '\n') {
        tokens.push_back(kLineEnd);
        before = U"\n";
        ++at;
        continue;
      }
      const size_t begin = skip(text, at, is_blank);
      size_t end = begin;
      if (begin < text.size() && text[begin] != '\n') {
        end = end_of_number(text, begin);
        if (end == begin) end = end_of_word(text, begin);
        if (end == begin) {
          end = begin + 1;
          while (text[begin] != kFlip && end < text.size() && text[end] == text[begin]) ++end;
        }
      }
      const View32 word = View32(text).substr(begin, end - begin);
      const bool flip = (begin > at) != space_by_default(before, word);
      if (!word.empty()) {
        tokens.push_back(marked(flip, word));
        before = word;
      } else if (flip) {
        tokens.push_back(Text32(1, kFlip));
      }
      at = end;
    }
    if (!tokens.empty()) tokens.erase(tokens.begin());
    return tokens;
  }

  Text32 join(const Tokens& tokens) const override {
    Text32 text, before = U"\n";
    for (const Text32& token : tokens) {
      if (token == kLineEnd) {
        text += '\n';
        before = U"\n";
        continue;
      }
      const Unmarked word = unmark(token);
      if (space_by_default(before, word.text) != word.flipped) {
        text += ' ';
        before = U" ";
      }
      if (word.text.empty()) continue;
      text += word.text;
      before = word.text;
    }
    return text;
  }

  size_t settled(View32 text) const override {
    for (size_t place = text.size(); place; --place) {
      if (text[place - 1] == '\n') return place;
      if (is_word(text[place - 1]) && place < text.size() && is_blank(text[place])) return place;
    }
    return 0;
  }
};

}  // namespace

const Tokenizer& word_tokenizer() {
  static const WordTokenizer tokenizer;
  return tokenizer;
}

}  // namespace micronet
