// Text from the bytes of a fuzzer: as UTF-8, or one character per byte, so that no mutation spoils the others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "status.hpp"
#include "unicode.hpp"

namespace fuzz {

// The character that a byte stands for: ASCII, or one of a class that the tokenizers tell apart.
inline char32_t character_of(uint8_t byte) {
  static const std::u32string others =
      U"\u00a0\u2028\u3000\u0085\uffed\u200d\u200c\ufeff"         // white space, the mark, joiners
      U"\u00e9\u00df\u0130\u01c5\ufb01\u03a3\u03c2\u0149"         // letters whose case changes their number
      U"\u0301\u0308\u0327\u0483\u093c\u094d\u0e31\u3099"         // marks, some that compose
      U"\u4e2d\u6587\u0e01\u0e02\u1780\u1000\u3042\u30ab\u30fc"   // scripts without spaces
      U"\u05d0\u05ea\u05f4\u0661\u066b\u066c\u0387\u2019\u2018"   // Hebrew, digits, what joins words
      U"\u201c\u201d\u00ab\u00bb\u2026\u00bf\u3001\u3002\u300c"   // punctuation, tight or not
      U"\uac00\u1100\u1161\u11a8\u212b\u0958\u1e9b\u0344"         // Hangul and others with a normal form
      U"\U0001f1e9\U0001f1ea\U0001f468\U0001f3fd\U00020000\ufe0f\U0010ffff\ufffd";
  return byte < 128 ? char32_t(byte) : others[size_t(byte - 128) % others.size()];
}

// False if the bytes should be UTF-8 and are not.
inline bool text_of(const uint8_t* data, size_t size, bool utf8, micronet::Text32& text) {
  if (!utf8) {
    for (size_t i = 0; i < size; ++i) text += character_of(data[i]);
    return true;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    text = micronet::decode_utf8(bytes);
  } catch (const micronet::Failure&) {
    return false;
  }
  if (micronet::encode_utf8(text) != bytes) __builtin_trap();
  return true;
}

}  // namespace fuzz
