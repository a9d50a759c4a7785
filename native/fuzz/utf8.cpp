// What fuzzers call: asks whether bytes are UTF-8, and compares the answer with that of the definition, written here
// once more without any haste. What is UTF-8 is decoded and encoded again.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "status.hpp"
#include "unicode.hpp"
#include "utf8.hpp"

namespace {

// Whether bytes are UTF-8, character by character: its number, and whether so many bytes are the fewest for it.
bool by_definition(const uint8_t* data, size_t size) {
  for (size_t at = 0; at < size;) {
    const uint8_t first = data[at];
    const size_t count = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    if (!count || count > size - at) return false;
    uint32_t number = count == 1 ? first : first & (0x7fu >> count);
    for (size_t i = 1; i < count; ++i) {
      if (data[at + i] >> 6 != 2) return false;
      number = number << 6 | (data[at + i] & 63u);
    }
    const size_t fewest = number < 0x80 ? 1 : number < 0x800 ? 2 : number < 0x10000 ? 3 : 4;
    if (fewest != count || number > 0x10ffff || (number >= 0xd800 && number < 0xe000)) return false;
    at += count;
  }
  return true;
}

bool decodes(std::string_view text, micronet::Text32& characters) {
  try {
    characters = micronet::decode_utf8(text);
    return true;
  } catch (const micronet::Failure&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Exactly as large as the input, so that AddressSanitizer detects reads past the end.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[size]);
  if (size) std::memcpy(copy.get(), data, size);
  const bool valid = micronet::is_utf8({copy.get(), size});
  if (valid != by_definition(data, size)) __builtin_trap();
  const std::string_view text(reinterpret_cast<const char*>(copy.get()), size);
  micronet::Text32 characters;
  // An exception takes longer than all of the rest: of what is refused, one in sixteen is decoded.
  if (!valid && (size == 0 || data[size - 1] % 16)) return 0;
  if (decodes(text, characters) != valid) __builtin_trap();
  if (valid && micronet::encode_utf8(characters) != text) __builtin_trap();
  return 0;
}
