#include "unicode.hpp"

#include "byte_tables.hpp"
#include "status.hpp"
#include "unicode_tables.hpp"
#include "utf8.hpp"

namespace micronet {

namespace {

namespace tables = unicode_tables;

constexpr char32_t kCapitalSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2;

// Maps that change the case of characters.
struct Case {
  CharacterMap single;
  LongMap several;
  bool add(char32_t c, Text32& out) const {
    if (const Text32* text = several.find(c)) {
      out += *text;
      return true;
    }
    int32_t distance = 0;
    if (!single.find(c, &distance)) return false;
    out += char32_t(int32_t(c) + distance);
    return true;
  }
};

const Case& lower_case() {
  static const Case table{CharacterMap(Numbers(tables::kToLower)), LongMap(Numbers(tables::kToLowerLong))};
  return table;
}

const Case& upper_case() {
  static const Case table{CharacterMap(Numbers(tables::kToUpper)), LongMap(Numbers(tables::kToUpperLong))};
  return table;
}

// Only characters whose title case differs from their upper case.
const Case& title_case() {
  static const Case table{CharacterMap(Numbers(tables::kToTitle)), LongMap(Numbers(tables::kToTitleLong))};
  return table;
}

// At the end of a word, Σ becomes ς: if a letter comes before it and none after it, with any marks between them.
bool ends_word(View32 text, size_t sigma) {
  static const CharacterSet cased{Numbers(tables::kCasedBeforeSigma)}, ignored{Numbers(tables::kIgnoredBeforeSigma)};
  size_t before = sigma;
  while (before && ignored.has(text[before - 1])) --before;
  if (!before || !cased.has(text[before - 1])) return false;
  size_t after = sigma + 1;
  while (after < text.size() && ignored.has(text[after])) ++after;
  return after == text.size() || !cased.has(text[after]);
}

void add_lower(View32 text, size_t place, Text32& out) {
  const char32_t c = text[place];
  if (c == kCapitalSigma) out += ends_word(text, place) ? kFinalSigma : kSmallSigma;
  else if (!lower_case().add(c, out)) out += c;
}

// Return which cases a text has, as a sum: capitals (1), small letters (2), letters in title case (4).
int cases_of(View32 text) {
  static const CharacterMap upper{Numbers(tables::kUppercase)}, other{Numbers(tables::kLowerOrTitle)};
  int cases = 0;
  for (char32_t c : text) {
    Text32 small;
    if (upper.find(c)) cases |= 1;
    else if (other.find(c)) cases |= lower_case().add(c, small) ? 4 : 2;  // a small letter has no lower-case form
  }
  return cases;
}

}  // namespace

Text32 decode_utf8(std::string_view text) {
  if (!is_utf8({reinterpret_cast<const uint8_t*>(text.data()), text.size()}))
    fail(MN_ERROR_ARGUMENT, "the text of %zu bytes is not UTF-8; convert it", text.size());
  Text32 out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto lead = uint8_t(text[i]);
    const size_t more = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    uint32_t c = more ? lead & (0x3F >> more) : lead;
    for (size_t j = 1; j <= more; ++j) c = c << 6 | (uint8_t(text[i + j]) & 0x3F);
    out += char32_t(c);
    i += more + 1;
  }
  return out;
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += {char(0xC0 | c >> 6), char(0x80 | (c & 63))};
  } else if (c < 0x10000) {
    out += {char(0xE0 | c >> 12), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
  } else {
    out += {char(0xF0 | c >> 18), char(0x80 | (c >> 12 & 63)), char(0x80 | (c >> 6 & 63)), char(0x80 | (c & 63))};
  }
}

std::string encode_utf8(View32 text) {
  std::string out;
  out.reserve(text.size());
  for (char32_t c : text) append_utf8(out, c);
  return out;
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_alphanumeric(char32_t c) {
  static const CharacterSet set{Numbers(tables::kAlphanumeric)};
  if (c < 128) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  return set.has(c);
}

bool is_word(char32_t c) { return c == '_' || is_alphanumeric(c); }

bool is_decimal(char32_t c) {
  static const CharacterSet set{Numbers(tables::kDecimal)};
  return c < 128 ? c >= '0' && c <= '9' : set.has(c);
}

bool is_alpha(View32 text) {
  static const CharacterSet numeric{Numbers(tables::kNumeric)};
  for (char32_t c : text)
    if (!is_alphanumeric(c) || numeric.has(c)) return false;
  return !text.empty();
}

bool is_upper(View32 text) { return cases_of(text) == 1; }

bool is_lower(View32 text) { return cases_of(text) == 2; }

bool is_mark(char32_t c) {
  static const CharacterSet set{Numbers(tables::kMarks)};
  return c >= 128 && set.has(c);
}

bool is_without_spaces(char32_t c) {
  static const CharacterSet set{Numbers(tables::kWithoutSpaces)};
  return c >= 128 && set.has(c);
}

bool is_katakana(char32_t c) {
  static const CharacterSet set{Numbers(tables::kKatakana)};
  return c >= 128 && set.has(c);
}

bool is_tight(char32_t c) {
  static const CharacterSet set{Numbers(tables::kWidePunctuation)};
  return c >= 128 && (is_without_spaces(c) || is_katakana(c) || set.has(c));
}

Text32 to_lower(View32 text) {
  Text32 out;
  for (size_t i = 0; i < text.size(); ++i) add_lower(text, i, out);
  return out;
}

Text32 to_upper(View32 text) {
  Text32 out;
  for (char32_t c : text)
    if (!upper_case().add(c, out)) out += c;
  return out;
}

Text32 capitalized(View32 text) {
  Text32 out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i) add_lower(text, i, out);
    else if (!title_case().add(text[0], out) && !upper_case().add(text[0], out)) out += text[0];
  }
  return out;
}

}  // namespace micronet
