#include "reading.hpp"

#include "json.hpp"
#include "status.hpp"

namespace micronet {

namespace {

constexpr char32_t kByteOrderMark = 0xFEFF;

// Replace every kind of line end by a newline, and remove white space before newlines and at the end
// (corpus/blocks.py).
Text32 clean(View32 text) {
  Text32 out;
  auto strip = [&] {
    while (!out.empty() && out.back() != '\n' && is_space(out.back())) out.pop_back();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    char32_t c = text[i];
    if (c == '\r') {
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
      c = '\n';
    }
    if (c == '\n') strip();
    out += c;
  }
  strip();
  return out;
}

std::string quoted(View32 text) {
  std::string out = "\"";
  auto escape = [&](uint32_t unit) {
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[unit >> shift & 15];
  };
  for (char32_t c : text) {
    const size_t known = View32(U"\b\t\n\f\r").find(c);
    if (known != View32::npos) out += {'\\', "btnfr"[known]};
    else if (c == '"' || c == '\\') out += {'\\', char(c)};
    else if (c >= 32 && c < 127) out += char(c);
    else if (c < 0x10000) escape(c);
    else escape(0xD800 + ((c - 0x10000) >> 10)), escape(0xDC00 + ((c - 0x10000) & 0x3FF));
  }
  return out + '"';
}

}  // namespace

std::string Place::to_json() const {
  return "{\"pending\": " + quoted(pending) + ", \"last\": " + quoted(last) +
         ", \"begins\": " + (begins ? "true" : "false") + ", \"boundary\": " + (boundary ? "true" : "false") + "}";
}

Place Place::from_json(std::string_view text) {
  Json json({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "saved text");
  Place place;
  unsigned seen = 0;
  auto once = [&](unsigned key) {
    if (seen & 1u << key) json.damaged("a key that occurs twice");
    seen |= 1u << key;
  };
  for (bool more = json.open('{'); more; more = json.next('}')) {
    const std::string key = json.key();
    if (key == "pending") once(0), place.pending = decode_utf8(json.string());
    else if (key == "last") once(1), place.last = decode_utf8(json.string());
    else if (key == "begins") once(2), place.begins = json.boolean();
    else if (key == "boundary") once(3), place.boundary = json.boolean();
    else json.damaged("an unknown key");
  }
  json.end();
  if (seen != 15) json.damaged("a missing key");
  return place;
}

Tokens Reader::take(View32 given) {
  Text32 piece(given);
  if (place_.boundary && !piece.empty()) {
    place_.boundary = false;
    if (!is_space(piece[0]) && spaced_by_default(piece)) piece.insert(piece.begin(), ' ');
  }
  Text32& pending = place_.pending;
  pending += piece;
  if (place_.begins) {
    size_t begin = 0;
    while (begin < pending.size() && pending[begin] != '\n' && pending[begin] != '\r' &&
           (is_space(pending[begin]) || pending[begin] == kByteOrderMark))
      ++begin;
    pending.erase(0, begin);
    place_.begins = pending.empty();
  }
  size_t cut = tokenizer_->settled(pending);
  if (cut && cut == pending.size() && pending[cut - 1] == '\r') --cut;  // it may be the first half of a line end
  return settle(cut);
}

Tokens Reader::open() const { return tokenizer_->tokens(clean(place_.pending), after()); }

Tokens Reader::close() { return settle(place_.pending.size()); }

void Reader::take_word(const Text32& word) {
  place_.last = word;
  place_.begins = false;
  place_.boundary = true;
}

// Return the character before the pending text.
char32_t Reader::after() const {
  if (place_.last.empty()) return '\n';
  const Text32 text = tokenizer_->join({place_.last});
  return text.empty() ? U'\n' : text.back();
}

Tokens Reader::settle(size_t cut) {
  Tokens tokens = tokenizer_->tokens(clean(View32(place_.pending).substr(0, cut)), after());
  place_.pending.erase(0, cut);
  if (!tokens.empty()) place_.last = tokens.back();
  return tokens;
}

bool Reader::spaced_by_default(View32 piece) const {
  const Tokens first = tokenizer_->tokens(piece, '\n');
  if (first.empty() || place_.last == kLineEnd) return false;
  const Text32 whole = tokenizer_->join({place_.last, first[0]});
  const size_t size = tokenizer_->join({place_.last}).size();
  return size < whole.size() && whole[size] == ' ';
}

}  // namespace micronet
