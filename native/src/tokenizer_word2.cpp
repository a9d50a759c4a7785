// Version 2 of the tokenizer `word` (corpus/unicode_words.py): words by Unicode's boundaries with additional rules.
#include "tokenizers.hpp"

namespace micronet {

namespace {

bool is_one_of(char32_t c, View32 all) { return all.find(c) != View32::npos; }

bool starts_tight(char32_t c) {
  return is_one_of(c, U",.;:!?)]}%\u201d\u00bb\u203a\u2026") || is_tight(c);
}
bool ends_tight(char32_t c) {
  return is_one_of(c, U"([{\u201c\u2018\u00ab\u2039\u00bf\u00a1") || is_tight(c);
}

bool is_letter(char32_t c) { return is_word(c) && !is_without_spaces(c) && !is_katakana(c); }  // digits too
bool is_hebrew(char32_t c) { return c >= 0x5D0 && c <= 0x5EA; }
bool is_punctuation(char32_t c) { return !is_word(c) && !is_space(c) && !is_mark(c); }
bool is_regional(char32_t c) { return c >= 0x1F1E6 && c <= 0x1F1FF; }

// The words of a text without white space, one after the other.
class Atoms {
 public:
  explicit Atoms(View32 text) : text_(text) {}

  // Return where the word that begins at `at` ends.
  size_t end_of(size_t at) const {
    if (text_.substr(at, kUnknown.size()) == kUnknown) return at + kUnknown.size();
    const char32_t c = text_[at];
    if (is_letter(c)) return end_of_word(at);
    if (is_katakana(c)) {
      while (is(at, is_katakana)) at = behind_marks(at + 1);
      return at;
    }
    if (is_without_spaces(c)) return behind_marks(at + 1);
    if (c == kFlip) return at + 1;
    if (is_regional(c) && is(at + 1, is_regional)) return at + 2;
    if (!is_punctuation(c)) return behind_marks(at);  // combining marks without a character before them
    while (at < text_.size() && text_[at] == c) ++at;
    at = behind_marks(at);
    // Emoji that are connected by joiners.
    while (text_[at - 1] == 0x200D && is(at, is_punctuation)) at = behind_marks(at + 1);
    return at;
  }

 private:
  template <class Is>
  bool is(size_t at, Is of_kind) const { return at < text_.size() && of_kind(text_[at]); }
  size_t behind_marks(size_t at) const {
    while (is(at, is_mark)) ++at;
    return at;
  }
  // Return where a word of letters and digits ends, including the punctuation that joins them.
  size_t end_of_word(size_t at) const {
    at = behind_marks(at + 1);
    while (at < text_.size()) {
      const char32_t c = text_[at], before = text_[at - 1];
      if (is_letter(c))
        at = behind_marks(at + 1);
      else if (is_one_of(c, U".,\u066b\u066c") && is_decimal(before) && is(at + 1, is_decimal))
        ++at;
      else if (is_one_of(c, U"'\u2019\u2018\uff07\u00b7\u0387\u055f\u05f4\u2027") && is(at + 1, is_letter))
        ++at;
      else if (is_hebrew(before) && (c == '\'' || (c == '"' && is(at + 1, is_hebrew))))
        ++at;
      else
        break;
    }
    return at;
  }

  View32 text_;
};

class UnicodeWordTokenizer : public Tokenizer {
 public:
  Tokens tokens(View32 given, char32_t after) const override {
    const Text32 text = normalized(given);
    Tokens tokens;
    bool begins = after == '\n', tight = begins || ends_tight(after);
    bool spaced = begins || (!text.empty() && is_space(text[0]));
    for (size_t at = 0; at < text.size();) {
      if (text[at] == '\n') {
        tokens.push_back(kLineEnd);
        begins = spaced = true;
      }
      if (is_space(text[at])) {
        ++at;
        continue;
      }
      size_t end = at;
      while (end < text.size() && !is_space(text[end])) ++end;
      add_chunk(View32(text).substr(at, end - at), begins, tight, spaced, tokens);
      begins = false;
      spaced = true;
      at = end;
    }
    return tokens;
  }

  Text32 join(const Tokens& tokens) const override {
    Text32 text;
    char32_t before = '\n';
    for (const Text32& token : tokens) {
      if (token == kLineEnd) {
        text += '\n';
        before = '\n';
        continue;
      }
      const Unmarked word = unmark(token);
      // Before a mark without a word no space is expected by default.
      const bool tight = before == '\n' || ends_tight(before) || word.text.empty() || starts_tight(word.text[0]);
      if (before != '\n' && tight == word.flipped) text += ' ';
      text += word.text;
      if (!word.text.empty()) before = word.text.back();
    }
    return text;
  }

  size_t settled(View32 text) const override {
    for (size_t place = text.size(); place--;) {
      const char32_t c = text[place];
      if (c == '\n') return place + 1;
      if (is_space(c)) return place;  // white space stays pending: the spacing of the next token depends on it
      if (place && !is_space(text[place - 1]) && is_without_spaces(c) && !is_mark(c)) return place;
    }
    return 0;
  }

 private:
  // Add the tokens of a chunk without white space. tight: whether no space is expected before it; set for the next
  // chunk.
  static void add_chunk(View32 chunk, bool begins, bool& tight, bool spaced, Tokens& tokens) {
    const Atoms atoms(chunk);
    for (size_t at = 0; at < chunk.size();) {
      const size_t end = atoms.end_of(at);
      const View32 word = chunk.substr(at, end - at);
      bool flip;
      if (at) flip = !(ends_tight(chunk[at - 1]) || starts_tight(word[0]));
      else flip = !begins && (tight || starts_tight(word[0])) == spaced;
      tokens.push_back(marked(flip, word));
      at = end;
    }
    tight = ends_tight(chunk.back());
  }
};

}  // namespace

const Tokenizer& unicode_word_tokenizer() {
  static const UnicodeWordTokenizer tokenizer;
  return tokenizer;
}

}  // namespace micronet
