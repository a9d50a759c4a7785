// What fuzzers call: splits bytes as text with a tokenizer, and holds it to what tokenizers.hpp promises.
//
// The first byte chooses the tokenizer and how the others become characters, the second where the text is cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "characters.hpp"
#include "reading.hpp"

using namespace micronet;

namespace {

void require(bool promised) {
  if (!promised) __builtin_trap();
}

bool begins_with(View32 text, View32 beginning) { return text.substr(0, beginning.size()) == beginning; }

void append(Tokens& tokens, const Tokens& more) { tokens.insert(tokens.end(), more.begin(), more.end()); }

void check(const Tokenizer& tokenizer, View32 text, size_t cut) {
  const Tokens tokens = tokenizer.tokens(text, '\n');
  for (const Text32& token : tokens) require(!token.empty() && std::none_of(token.begin(), token.end(), is_space));
  const Text32 joined = tokenizer.join(tokens);
  require(tokenizer.join(tokenizer.tokens(joined, '\n')) == joined);
  // Tokens before others give the beginning of the text.
  const Tokens first(tokens.begin(), tokens.begin() + long(cut % (tokens.size() + 1)));
  require(begins_with(joined, tokenizer.join(first)));
  // Lines are independent.
  const size_t line = text.find('\n', cut % (text.size() + 1));
  if (line != View32::npos) {
    Tokens apart = tokenizer.tokens(text.substr(0, line + 1), '\n');
    append(apart, tokenizer.tokens(text.substr(line + 1), '\n'));
    require(apart == tokens);
  }
  // A text in two pieces has the tokens of the whole, wherever it is cut.
  const size_t half = cut % (text.size() + 1);
  Reader whole(tokenizer), pieces(tokenizer);
  Tokens once = whole.take(text), twice = pieces.take(text.substr(0, half));
  append(once, whole.close());
  append(twice, pieces.take(text.substr(half)));
  require(Place::from_json(pieces.place().to_json()).pending == pieces.place().pending);
  append(twice, pieces.close());
  require(once == twice);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const Tokenizer* const tokenizers[] = {find_tokenizer("wikitext"), find_tokenizer("word"), find_tokenizer("word-2")};
  Text32 text;
  if (!fuzz::text_of(data + 2, size - 2, data[0] & 4, text)) return 0;
  if ((data[0] & 3) == 3) {  // cases and normal forms
    const Text32 normal = normalized(text);
    require(normalized(normal) == normal);
    to_upper(to_lower(text));
    capitalized(text);
    is_upper(text);
  } else {
    check(*tokenizers[data[0] & 3], text, data[1]);
  }
  return 0;
}
