// Unicode's normal form C: decompose characters, sort their marks, compose them.
#include <algorithm>
#include <vector>

#include "byte_tables.hpp"
#include "unicode.hpp"
#include "unicode_tables.hpp"

namespace micronet {

namespace {

// Korean syllables are not in the tables; they are computed.
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28, kSyllableCount = 11172;

struct Decomposition {
  char32_t whole, first, second;  // second is 0 if there is only one part
};

struct Tables {
  std::vector<Decomposition> by_whole, joinable;
  bool joins[256] = {};  // by low byte: whether a second part has it; excludes most characters quickly
  CharacterMap classes{Numbers(unicode_tables::kCombiningClass)};

  Tables() {
    Numbers gaps(unicode_tables::kDecomposed), firsts(unicode_tables::kFirstParts), seconds(unicode_tables::kSecondParts);
    char32_t code = 0, first = 0;
    while (gaps.more()) {
      code += gaps.next();
      const uint32_t change = firsts.next(), second = seconds.next();
      first += uint32_t(from_zigzag(change / 2));
      by_whole.push_back({code, first, second});
      if (change % 2) continue;  // never composed
      joinable.push_back(by_whole.back());
      joins[second & 255] = true;
    }
  }
  int class_of(char32_t c) const {
    int32_t value = 0;
    return c >= 0x300 && classes.find(c, &value) ? value : 0;
  }
  void take_apart(char32_t c, Text32& out) const {
    if (c >= kSyllables && c < kSyllables + kSyllableCount) {
      const char32_t number = c - kSyllables, tail = number % kTailCount;
      out += kLeads + number / kTailCount / kVowelCount;
      out += kVowels + number / kTailCount % kVowelCount;
      if (tail) out += kTails + tail;
      return;
    }
    const auto found = std::lower_bound(by_whole.begin(), by_whole.end(), c,
                                        [](const Decomposition& d, char32_t code) { return d.whole < code; });
    if (found == by_whole.end() || found->whole != c) {
      out += c;
      return;
    }
    take_apart(found->first, out);
    if (found->second) take_apart(found->second, out);
  }
  // Return the character that two characters compose to, or 0.
  char32_t together(char32_t a, char32_t b) const {
    if (a >= kLeads && a < kLeads + kLeadCount && b >= kVowels && b < kVowels + kVowelCount)
      return kSyllables + ((a - kLeads) * kVowelCount + (b - kVowels)) * kTailCount;
    if (a >= kSyllables && a < kSyllables + kSyllableCount && (a - kSyllables) % kTailCount == 0 && b > kTails &&
        b < kTails + kTailCount)
      return a + (b - kTails);
    if (!joins[b & 255]) return 0;
    for (const Decomposition& d : joinable)
      if (d.second == b && d.first == a) return d.whole;
    return 0;
  }
};

}  // namespace

Text32 normalized(View32 text) {
  if (std::all_of(text.begin(), text.end(), [](char32_t c) { return c < 0x300; })) return Text32(text);
  static const Tables tables;
  Text32 apart;
  for (char32_t c : text) tables.take_apart(c, apart);
  // Sort the marks of each run by their classes.
  for (size_t begin = 0; begin < apart.size();) {
    size_t end = begin;
    while (end < apart.size() && tables.class_of(apart[end])) ++end;
    for (size_t i = begin + 1; i < end; ++i)  // insertion sort: runs are short
      for (size_t j = i; j > begin && tables.class_of(apart[j]) < tables.class_of(apart[j - 1]); --j)
        std::swap(apart[j], apart[j - 1]);
    begin = end == begin ? begin + 1 : end;
  }
  // A mark joins the last starter unless a mark of its own class, or a starter, is between them.
  Text32 out;
  size_t starter = Text32::npos;
  int last = -1;  // class of the last character after the starter; -1 if there is none
  for (char32_t c : apart) {
    const int own = tables.class_of(c);
    if (starter != Text32::npos && (last < own || last == -1)) {
      if (const char32_t whole = tables.together(out[starter], c)) {
        out[starter] = whole;
        continue;
      }
    }
    if (own == 0) {
      starter = out.size();
      last = -1;
    } else {
      last = own;
    }
    out += c;
  }
  return out;
}

}  // namespace micronet
