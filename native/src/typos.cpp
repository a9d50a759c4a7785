#include "typos.hpp"

#include <algorithm>
#include <functional>

#include "sorting.hpp"

namespace micronet {

namespace {

constexpr int kSteps = 4000;

// Return whether two keys are neighbours on the keyboard. Each row is shifted by half a key from the one above.
bool touch(char32_t one, char32_t other) {
  static constexpr std::string_view kRows[] = {"qwertyuiop", "asdfghjkl", "zxcvbnm"};
  if (one > 127 || other > 127) return false;
  int rows[2], columns[2];
  const char keys[] = {char(one), char(other)};
  for (int i = 0; i < 2; ++i) {
    rows[i] = 0;
    size_t column = kRows[0].find(keys[i]);
    while (column == kRows[0].npos) {
      if (++rows[i] == 3) return false;
      column = kRows[rows[i]].find(keys[i]);
    }
    columns[i] = int(column);
  }
  const int down = rows[1] - rows[0], across = columns[1] - columns[0];
  if (down == 0) return across == 1 || across == -1;
  return (down == 1 && (across == -1 || across == 0)) || (down == -1 && (across == 1 || across == 0));
}

class Search {
 public:
  Search(const Beginnings& words, const Text32& typed, int limit) : words_(words), typed_(typed), limit_(limit) {}

  std::vector<Beginning> run() {
    walk(0, words_.size(), 0, 0);
    return std::move(found_);
  }

 private:
  // Continue the search in words low … high - 1, which begin with `prefix_`, from typed letter `at`.
  void walk(size_t low, size_t high, size_t at, int cost) {
    if (--steps_ < 0 || cost > limit_ || low >= high) return;
    if (at == typed_.size()) return keep(cost);
    const char32_t letter = typed_[at];
    const size_t depth = prefix_.size();
    follow(low, high, {letter}, at + 1, cost);
    if (cost + kSlip > limit_) return;
    if (at + 1 < typed_.size() && typed_[at + 1] != letter)
      follow(low, high, {typed_[at + 1], letter}, at + 2, cost + kSlip);
    if (depth) walk(low, high, at + 1, cost + kError);  // the first letter is seldom missing or extra
    for (size_t place = low; place < high;) {
      const std::string_view rest = words_.word(place).substr(depth);
      if (rest.empty()) {
        ++place;
        continue;
      }
      const auto lead = uint8_t(rest[0]);
      const std::string_view bytes = rest.substr(0, lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4);
      const char32_t other = bytes.size() == 1 ? lead : decode_utf8(bytes)[0];
      size_t end = high;
      for (size_t i = 0, from = place; i < bytes.size(); ++i) end = range(depth + i, uint8_t(bytes[i]), from, end).second;
      prefix_ += bytes;
      if (other != letter) {
        const int wrong = touch(other, letter) ? kSlip : kError;
        if (depth || wrong == kSlip) walk(place, end, at + 1, cost + wrong);
        if (depth) walk(place, end, at, cost + kError);
      }
      prefix_.resize(depth);
      place = end;
    }
  }

  void follow(size_t low, size_t high, std::initializer_list<char32_t> letters, size_t at, int cost) {
    const size_t depth = prefix_.size();
    for (char32_t c : letters) append_utf8(prefix_, c);
    for (size_t i = depth; i < prefix_.size(); ++i) {
      const auto next = range(i, uint8_t(prefix_[i]), low, high);
      low = next.first;
      high = next.second;
    }
    walk(low, high, at, cost);
    prefix_.resize(depth);
  }

  // Return the range of words low … high - 1 that have `byte` at `depth`. These words have the same bytes before it.
  std::pair<size_t, size_t> range(size_t depth, int byte, size_t low, size_t high) const {
    const size_t begin = words_.first_with(depth, byte, low, high);
    return {begin, words_.first_with(depth, byte + 1, begin, high)};
  }

  void keep(int cost) {
    if (prefix_.empty()) return;
    for (Beginning& one : found_)
      if (one.text == prefix_) {
        one.cost = std::min(one.cost, cost);
        return;
      }
    found_.push_back({prefix_, cost});
  }

  const Beginnings& words_;
  const Text32& typed_;
  const int limit_;
  int steps_ = kSteps;
  std::string prefix_;
  std::vector<Beginning> found_;
};

}  // namespace

Beginnings::Beginnings(const std::vector<std::string>& words) {
  std::vector<Headed> sorted;
  for (const std::string& word : words) sorted.push_back({word, 0});
  sort_texts(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i && sorted[i].text == sorted[i - 1].text) continue;
    words_.push_back({uint32_t(text_.size()), uint32_t(sorted[i].text.size())});
    text_ += sorted[i].text;
  }
}

void Beginnings::add(std::string_view added) {
  size_t low = 0, high = size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (word(middle) < added) low = middle + 1;
    else high = middle;
  }
  if (low < size() && word(low) == added) return;
  const Span span{uint32_t(text_.size()), uint32_t(added.size())};
  text_ += added;
  words_.insert(words_.begin() + std::ptrdiff_t(low), span);
}

size_t Beginnings::first_with(size_t depth, int byte, size_t low, size_t high) const {
  const auto before = [&](size_t place) {
    const Span span = words_[place];
    return span.size <= depth || uint8_t(text_[span.start + depth]) < byte;
  };
#if !defined(__wasm__)
  size_t step = 1;  // the result is often near the beginning
  while (step < high - low && before(low + step - 1)) {
    low += step;
    step *= 2;
  }
  high = std::min(high, low + step);
#endif
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

std::vector<Beginning> Beginnings::near(const Text32& typed, int limit) const { return Search(*this, typed, limit).run(); }

}  // namespace micronet
