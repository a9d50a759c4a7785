// What fuzzers call: reads bytes as a personal memory with a header and a checksum that are right, recalls it, learns a
// text into it, and forgets words. What is accepted must be written as the same bytes.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "api_guard.hpp"
#include "checksum.hpp"
#include "packed.hpp"
#include "personal.hpp"

namespace {

using namespace micronet;

constexpr size_t kHeader = 32, kCounts = 24, kSum = 8;

// Models of two kinds: floats and integers.
const Model& model_of(int kind) {
  static mn_model* models[2] = {};
  static std::vector<uint8_t> files[2];
  if (!models[kind]) {
    packed::Options o;
    o.layers = 1;
    o.vocabulary = 10;
    o.cutoffs = {4, 6};
    o.embedding_widths = {4, 2, 1};
    o.width = 4;
    o.ffn_width = 5;
    o.bits = kind ? 9 : 32;
    o.activation_bits = kind ? 9 : 0;
    o.cache = 6;
    packed::File file = packed::make(o);
    const std::string old = "\"wikitext\"", words = "<eos>\n<unk>\nthe\nThe\na\n.\n\uffed.\n\uffed\n\u00e9\nnew\n";
    file.metadata.replace(file.metadata.find(old), old.size(), packed::quoted("word-2"));
    packed::Tensor& vocabulary = file.tensor("vocabulary");
    vocabulary.bytes.assign(words.begin(), words.end());
    vocabulary.shape = {int64_t(words.size())};
    files[kind] = file.bytes();
    mn_error error;
    const std::vector<uint8_t>& bytes = files[kind];
    if (mn_model_open_bytes(bytes.data(), bytes.size(), "scalar", &models[kind], &error) != MN_OK) __builtin_trap();
  }
  return *models[kind]->model;
}

Bytes bytes_of(const std::string& text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }

Memories reread(const Model& model, const Memories& memories) {
  const std::string bytes = encode_memories(model, memories);
  if (bytes.size() > most_bytes(model)) __builtin_trap();
  const Memories again = decode_memories(model, bytes_of(bytes));  // what was written is accepted
  if (encode_memories(model, again) != bytes) __builtin_trap();
  return again;
}

// All probabilities of a session that recalls memories sum to 1, or are refused: states may be very large.
void recall(const Model& model, const Memories& memories) {
  Session session(model);
  float logs[10];
  double sum = 0;
  try {
    const auto count = int64_t(memories.following.size());
    const auto known = std::make_shared<const Recollections>(model, memories.states.data(), memories.following.data(),
                                                             count, memories.words, 0.3, 0.01);
    session.recall(known);
    const int32_t text[] = {0, 2, 9};
    session.feed(text, 3);
    session.log_distribution(logs);
    for (const float x : logs) sum += std::exp(double(x));
    for (int32_t id = 10; id < 10 + session.added().size(); ++id) sum += std::exp(double(session.log_probability(id)));
    session.top_k(5);
  } catch (const Failure&) {
    return;
  }
  if (!(std::abs(sum - 1) < 1e-3)) __builtin_trap();
}

// A word that was forgotten is not there: to forget it again changes nothing.
Memories without(const Model& model, const Memories& memories, const Text32& word) {
  bool found = false;
  const Memories after = reread(model, forget_word(model, memories, word, &found));
  const Memories again = forget_word(model, after, word, &found);
  if (found || encode_memories(model, again) != encode_memories(model, after)) __builtin_trap();
  return after;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1 + kHeader - kCounts) return 0;
  const Model& model = model_of(data[0] & 1);
  size_t tokens = 0;
  std::string bytes = encode_memories(model, learn_text(model, {}, U"the Knob. a knob, frob\n", &tokens));
  bytes.resize(bytes.size() - kSum);
  if (data[0] & 2) {  // the input is all behind what belongs to the model, else it is laid over a memory
    bytes.resize(kCounts);
    bytes.append(reinterpret_cast<const char*>(data + 1), size - 1);
  } else {
    for (size_t i = 1; i < size && kCounts + i - 1 < bytes.size(); ++i) bytes[kCounts + i - 1] ^= char(data[i]);
  }
  const uint64_t sum = checksum(bytes_of(bytes)) ^ uint64_t(data[0] & 4);  // bit 2 spoils it
  bytes.append(reinterpret_cast<const char*>(&sum), kSum);
  Memories memories;
  try {
    memories = decode_memories(model, bytes_of(bytes));
  } catch (const Failure& failure) {
    if (std::strchr(failure.error().message, '\n')) __builtin_trap();
    return 0;
  }
  if (data[0] & 4 || encode_memories(model, memories) != bytes) __builtin_trap();
  recall(model, memories);
  memories = reread(model, learn_text(model, memories, U"The zorblax. a new Zorblax\n", &tokens));
  recall(model, memories);
  const Screen screen(model);
  std::vector<Text32> words = {U"zorblax", U"the"};
  for (const CountedWord& word : memories.words) words.push_back(screen.looks(decode_utf8(word.text)));
  for (const Text32& word : words) memories = without(model, memories, word);
  for (const CountedWord& word : memories.words)  // left are marks without a word
    if (!screen.looks(decode_utf8(word.text)).empty()) __builtin_trap();
  return 0;
}
