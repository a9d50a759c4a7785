#include "json.hpp"

#include <set>

#include "status.hpp"
#include "unicode.hpp"
#include "utf8.hpp"

namespace micronet {

namespace {

constexpr int kDeepest = 64;
constexpr size_t kLongestNumber = 400;
constexpr int64_t kLargestPower = 300;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Return the power of ten of a number's first non-zero digit; very small for 0. It is computed from the text, as other
// readers do it, so that rounding cannot decide whether a file is accepted.
int64_t magnitude(Bytes number) {
  int64_t power = -1, exponent = 0, places = 0;
  bool found = false, fraction = false;
  for (size_t i = 0; i < number.size; ++i) {
    const char c = char(number.data[i]);
    if (c == 'e' || c == 'E') {
      const bool negative = number.data[i + 1] == '-';
      for (++i; i < number.size; ++i)
        if (is_digit(char(number.data[i])) && exponent < 1000000) exponent = exponent * 10 + (number.data[i] - '0');
      if (negative) exponent = -exponent;
    } else if (c == '.') {
      fraction = true;
    } else if (is_digit(c)) {
      if (!found && c != '0') found = true, power = fraction ? -places - 1 : 0;
      else if (found && !fraction) ++power;
      if (fraction) ++places;
    }
  }
  return found ? power + exponent : INT64_MIN;
}


}  // namespace

void Json::damaged(const char* why) const {
  fail(MN_ERROR_FORMAT, "the %s is not the JSON it should be at byte %zu: %.200s; pack the model again",
       what_, at_, why);
}

char Json::peek() {
  while (at_ < text_.size) {
    const char c = char(text_.data[at_]);
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
    ++at_;
  }
  return 0;
}

void Json::expect(char c) {
  if (peek() != c || at_ >= text_.size) {
    const char why[] = {'n', 'o', ' ', c, 0};
    damaged(why);
  }
  ++at_;
}

bool Json::open(char bracket) {
  expect(bracket);
  const char closing = bracket == '{' ? '}' : ']';
  if (peek() != closing) return true;
  ++at_;
  return false;
}

bool Json::next(char bracket) {
  const char c = peek();
  if (c != ',' && c != bracket) damaged("neither a comma nor the end of the list");
  ++at_;
  return c == ',';
}

std::string Json::key() {
  std::string name = string();
  expect(':');
  return name;
}

uint32_t Json::hexadecimal() {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    if (at_ >= text_.size) damaged("the text ends within a string");
    const char c = char(text_.data[at_++]);
    value <<= 4;
    if (is_digit(c)) value |= uint32_t(c - '0');
    else if (c >= 'a' && c <= 'f') value |= uint32_t(c - 'a' + 10);
    else if (c >= 'A' && c <= 'F') value |= uint32_t(c - 'A' + 10);
    else damaged("\\u without four digits");
  }
  return value;
}

std::string Json::string() {
  expect('"');
  std::string out;
  while (true) {
    const size_t from = at_;
    while (at_ < text_.size && text_.data[at_] != '"' && text_.data[at_] != '\\' &&
           text_.data[at_] >= 0x20)
      ++at_;
    if (!is_utf8(text_.part(from, at_))) damaged("a string is not UTF-8");
    out.append(reinterpret_cast<const char*>(text_.data) + from, at_ - from);
    if (at_ >= text_.size) damaged("the text ends within a string");
    const char c = char(text_.data[at_++]);
    if (c == '"') return out;
    if (c != '\\') damaged("a control character within a string");
    if (at_ >= text_.size) damaged("the text ends within a string");
    const char escaped = char(text_.data[at_++]);
    switch (escaped) {
      case '"': case '\\': case '/': out += escaped; break;
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      case 'u': {
        uint32_t code = hexadecimal();
        if (code >= 0xDC00 && code < 0xE000) damaged("half of a surrogate pair");
        if (code >= 0xD800 && code < 0xDC00) {
          if (text_.size - at_ < 2 || text_.data[at_] != '\\' || text_.data[at_ + 1] != 'u')
            damaged("half of a surrogate pair");
          at_ += 2;
          const uint32_t second = hexadecimal();
          if (second < 0xDC00 || second >= 0xE000) damaged("half of a surrogate pair");
          code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
        }
        append_utf8(out, code);
        break;
      }
      default: damaged("an unknown escape");
    }
  }
}

int64_t Json::integer() {
  if (!is_digit(peek())) damaged("not a whole number of 0 or more");
  const bool zero = text_.data[at_] == '0';
  int64_t value = 0;
  size_t digits = 0;
  while (at_ < text_.size && is_digit(char(text_.data[at_]))) {
    value = value * 10 + (text_.data[at_++] - '0');
    if (value > (int64_t{1} << 53)) damaged("a number above 2^53");
    ++digits;
  }
  if (zero && digits > 1) damaged("a number that begins with 0");
  if (at_ < text_.size) {
    const char c = char(text_.data[at_]);
    if (c == '.' || c == 'e' || c == 'E') damaged("not a whole number");
  }
  return value;
}

bool Json::boolean() {
  const char c = peek();
  if (c != 't' && c != 'f') damaged("neither true nor false");
  skip();
  return c == 't';
}

bool Json::null() {
  if (peek() != 'n') return false;
  skip();
  return true;
}

bool Json::is_object() { return peek() == '{'; }

void Json::skip() { skip_value(0); }

void Json::skip_number() {
  auto digits = [&] {
    if (at_ >= text_.size || !is_digit(char(text_.data[at_]))) damaged("a number without digits");
    while (at_ < text_.size && is_digit(char(text_.data[at_]))) ++at_;
  };
  const size_t from = at_;
  if (text_.data[at_] == '-') ++at_;
  const bool zero = at_ < text_.size && text_.data[at_] == '0';
  const size_t first = at_;
  digits();
  if (zero && at_ - first > 1) damaged("a number that begins with 0");
  if (at_ < text_.size && text_.data[at_] == '.') {
    ++at_;
    digits();
  }
  if (at_ < text_.size && (text_.data[at_] == 'e' || text_.data[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size && (text_.data[at_] == '-' || text_.data[at_] == '+')) ++at_;
    digits();
  }
  if (at_ - from > kLongestNumber) damaged("a number of more than 400 characters");
  if (magnitude(text_.part(from, at_)) >= kLargestPower) damaged("a number of 1e300 or more");
}

void Json::skip_value(int depth) {
  if (depth > kDeepest) damaged("values within values more than 64 deep");
  const char c = peek();
  if (c == '{') {
    std::set<std::string> keys;
    for (bool more = open('{'); more; more = next('}')) {
      if (!keys.insert(key()).second) damaged("a key that occurs twice");
      skip_value(depth + 1);
    }
  } else if (c == '[') {
    for (bool more = open('['); more; more = next(']')) skip_value(depth + 1);
  } else if (c == '"') {
    string();
  } else if (c == '-' || is_digit(c)) {
    skip_number();
  } else {
    for (const char* name : {"true", "false", "null"}) {
      const size_t size = std::strlen(name);
      if (text_.size - at_ >= size && std::memcmp(text_.data + at_, name, size) == 0) {
        at_ += size;
        return;
      }
    }
    damaged("no value");
  }
}

void Json::end() {
  peek();
  if (at_ != text_.size) damaged("text after the end");
}

}  // namespace micronet
