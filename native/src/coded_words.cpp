#include "coded_words.hpp"

#include "packed_tensor.hpp"
#include "prefix_code.hpp"

namespace micronet {

namespace {

constexpr char kName[] = "vocabulary.coded";
constexpr int64_t kShared = 16;           // a word shares fewer bytes than this with the one before it
constexpr size_t kTables = 4 + kShared / 2;  // where the tables begin
constexpr int64_t kLargestFactor = 128;   // words take at most this many times the bytes of their codes

}  // namespace

Buffer<uint8_t> decode_words(Bytes coded, int64_t count) {
  if (coded.size < kTables + 32) damaged(kName, "too few bytes for its codes");
  const auto size = int64_t(read_at<uint32_t>(coded.data));
  if (size > kLargestFactor * int64_t(coded.size)) damaged(kName, "fewer codes than its words take");
  const CodeTable shared_code = read_code(coded.data + 4, kShared, nullptr, true, kName);
  CodeTable tables[256];
  size_t at = kTables + 32;
  for (int before = 0; before < 256; ++before) {
    if (!(coded.data[kTables + size_t(before / 8)] >> before % 8 & 1)) continue;
    const size_t number = at < coded.size ? size_t(coded.data[at]) + 1 : coded.size;
    const size_t lengths = at + 1 + number, end = lengths + (number + 1) / 2;
    if (end > coded.size) damaged(kName, "too few bytes for its codes");
    const uint8_t* bytes = coded.data + at + 1;
    for (size_t i = 0; i < number; ++i) {
      if (i && bytes[i] <= bytes[i - 1]) damaged(kName, "bytes of a code that do not increase");
      if (!code_length(coded.data + lengths, int64_t(i))) damaged(kName, "a code length of 0");
    }
    tables[before] = read_code(coded.data + lengths, int64_t(number), bytes, true, kName);
    at = end;
  }
  Buffer<uint8_t> text(size);
  BitReader bits(coded.part(at, coded.size));
  int64_t begin = 0, length = 0, filled = 0;  // the word before, and how many bytes of the text are decoded
  for (int64_t word = 0; word < count; ++word) {
    const int shared = bits.next(shared_code);
    if (shared < 0 || shared > length) damaged(kName, "a word that takes over more than the one before has");
    if (size - filled < shared) damaged(kName, "more words than it says");
    if (shared) std::memcpy(text.data() + filled, text.data() + begin, size_t(shared));
    begin = filled;
    filled += shared;
    for (uint8_t last = shared ? text[filled - 1] : '\n';;) {
      const CodeTable& table = tables[last];
      const int byte = table.empty() ? -1 : bits.next(table);
      if (byte < 0) damaged(kName, "bits that are no code");
      if (filled == size) damaged(kName, "more words than it says");
      text[filled++] = last = uint8_t(byte);
      if (byte == '\n') break;
    }
    length = filled - 1 - begin;
  }
  if (filled != size || !bits.at_end()) damaged(kName, "codes after its last word");
  return text;
}

}  // namespace micronet
