#include "prefix_code.hpp"

#include "packed_tensor.hpp"

namespace micronet {

CodeTable read_code(const uint8_t* lengths, int64_t count, const uint8_t* symbols, bool alone, const char* name) {
  constexpr uint32_t kRoom = 1u << kLongestCode;
  if (count % 2 && lengths[count / 2] >> 4) damaged(name, "bits set after its last code length");
  int64_t number[16] = {};
  for (int64_t i = 0; i < count; ++i) ++number[code_length(lengths, i)];
  uint64_t filled = 0;
  int64_t used = 0;
  for (int length = 1; length < 16; ++length) {
    used += number[length];
    if (length <= kLongestCode) filled += uint64_t(number[length]) << (kLongestCode - length);
    else if (number[length]) filled = kRoom + 1;
  }
  const bool is_alone = alone && used == 1 && number[1] == 1;
  if (filled != kRoom && !is_alone) damaged(name, "code lengths that are not those of a complete code");
  CodeTable table(kRoom, 0);
  uint32_t next[16] = {};  // the next code of each length
  for (int length = 1, code = 0; length <= kLongestCode; ++length) {
    code <<= 1;
    next[length] = uint32_t(code);
    code += int(number[length]);
  }
  for (int64_t i = 0; i < count; ++i) {
    const int length = code_length(lengths, i);
    if (!length) continue;
    const uint32_t code = next[length]++;
    uint32_t written = 0;  // the code with its bits reversed: its highest bit is written first
    for (int bit = 0; bit < length; ++bit) written |= (code >> bit & 1) << (length - 1 - bit);
    const auto symbol = uint32_t(symbols ? symbols[i] : i);
    for (uint32_t at = written; at < kRoom; at += 1u << length) table[at] = uint16_t(symbol << 4 | uint32_t(length));
  }
  return table;
}

}  // namespace micronet
