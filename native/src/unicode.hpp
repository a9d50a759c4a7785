// Characters: UTF-8, classes, and cases, as Python's str has them (unicode_tables.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bytes.hpp"

namespace micronet {

// Text as the tokenizers see it: one number per character.
using Text32 = std::u32string;
using View32 = std::u32string_view;

// Decode UTF-8; throws Failure if the bytes are not UTF-8.
Text32 decode_utf8(std::string_view text);
std::string encode_utf8(View32 text);
// Append one character's bytes.
void append_utf8(std::string& out, uint32_t c);

bool is_space(char32_t c);         // str.isspace, and \s of regular expressions
bool is_alphanumeric(char32_t c);  // str.isalnum
bool is_word(char32_t c);          // \w: also the underscore
bool is_decimal(char32_t c);       // \d
bool is_alpha(View32 text);        // str.isalpha
bool is_upper(View32 text);        // str.isupper
bool is_lower(View32 text);        // str.islower
// The classes of corpus/scripts.py.
bool is_mark(char32_t c);
bool is_without_spaces(char32_t c);
bool is_katakana(char32_t c);
bool is_tight(char32_t c);

Text32 to_lower(View32 text);    // str.lower
Text32 to_upper(View32 text);    // str.upper
Text32 capitalized(View32 text); // str.capitalize

Text32 normalized(View32 text);  // Unicode's normal form C

}  // namespace micronet
