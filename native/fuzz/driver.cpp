// Runs the fuzz target on mutations of the corpus, for compilers without libFuzzer.
//
//   fuzz CORPUS COUNT [SEED]     COUNT mutated inputs; the same seed gives the same ones
//   fuzz --make CORPUS           writes the corpus: small packed files of all kinds
//
// Mutations know the format: beside bits, bytes and lengths they change numbers in the header, copy
// parts of it, and put special floats into tensors. An input that does harm stays in `crash.bin`.
#include <dirent.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "packed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  void mutate(Bytes& bytes) {
    for (size_t times = 1 + below(3); times; --times) {
      if (bytes.size() < 16) return;
      switch (below(10)) {
        case 0: bytes[below(bytes.size())] ^= uint8_t(1 << below(8)); break;
        case 1: bytes[below(bytes.size())] = uint8_t(below(256)); break;
        case 2: bytes.resize(below(bytes.size())); break;
        case 3: bytes.insert(bytes.begin() + long(below(bytes.size())), below(9), uint8_t(below(256))); break;
        case 4: case 5: change_number(bytes); break;
        case 6: copy_text(bytes); break;
        case 7: case 8: put_float(bytes); break;
        default: flip_data(bytes); break;
      }
    }
  }

 private:
  size_t below(size_t n) { return n ? size_t(random_() % n) : 0; }

  size_t header_end(const Bytes& bytes) {
    uint64_t length;
    std::memcpy(&length, bytes.data(), 8);
    return length < bytes.size() - 8 ? size_t(length) + 8 : bytes.size();
  }

  // Replaces part of the header and sets its length right, so that the rest is still looked at.
  void replace(Bytes& bytes, size_t at, size_t count, const std::string& text) {
    const size_t end = header_end(bytes);
    bytes.erase(bytes.begin() + long(at), bytes.begin() + long(at + count));
    bytes.insert(bytes.begin() + long(at), text.begin(), text.end());
    const uint64_t length = end - count + text.size() - 8;
    std::memcpy(bytes.data(), &length, 8);
  }

  void change_number(Bytes& bytes) {
    const size_t end = header_end(bytes);
    size_t at = 8 + below(end - 8);
    while (at < end && (bytes[at] < '0' || bytes[at] > '9')) ++at;
    size_t stop = at;
    while (stop < end && bytes[stop] >= '0' && bytes[stop] <= '9') ++stop;
    if (at == stop) return;
    const std::string old(bytes.begin() + long(at), bytes.begin() + long(stop));
    const long value = old.size() < 16 ? std::atol(old.c_str()) : 7;
    const std::string choices[] = {"0", "1", std::to_string(value + 1), std::to_string(value - 1), std::to_string(value * 2),
                                   std::to_string(value * 8), "2147483647", "4294967296", "9007199254740992",
                                   "18446744073709551616", "-1", "32", "16", "1e9", "null", "[]"};
    replace(bytes, at, stop - at, choices[below(16)]);
  }

  void copy_text(Bytes& bytes) {
    const size_t end = header_end(bytes);
    const size_t from = 8 + below(end - 8), size = std::min(below(80), end - from);
    const std::string text(bytes.begin() + long(from), bytes.begin() + long(from + size));
    const size_t to = 8 + below(end - 8);
    replace(bytes, to, below(2) ? std::min(size, end - to) : 0, text);
  }

  void put_float(Bytes& bytes) {
    const size_t begin = header_end(bytes);
    if (begin + 4 > bytes.size()) return;
    const uint32_t images[] = {0x7fc00000, 0x7f800000, 0xff800000, 0x80000000, 0, 1, 0x7f7fffff, 0xff7fffff,
                               0x3f800001, 0xbf800000, 0x0d800000, 0x71800000, 0x00800000, 0x5f000000};
    const uint32_t image = images[below(14)];
    std::memcpy(bytes.data() + begin + below((bytes.size() - begin) / 4) * 4, &image, 4);
  }

  void flip_data(Bytes& bytes) {
    const size_t begin = header_end(bytes);
    if (begin >= bytes.size()) return;
    for (size_t i = 1 + below(8); i; --i) bytes[begin + below(bytes.size() - begin)] ^= uint8_t(1 << below(8));
  }

  std::mt19937 random_;
};

Bytes read_file(const std::string& path) {
  Bytes bytes;
  if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
    for (int c; (c = std::fgetc(file)) != EOF;) bytes.push_back(uint8_t(c));
    std::fclose(file);
  }
  return bytes;
}

bool write_file(const std::string& path, const Bytes& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool written = file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return file && std::fclose(file) == 0 && written;
}

int make_corpus(const std::string& folder) {
  int number = 0;
  for (int bits : {2, 4, 8, 9, 16, 32})
    for (int kind = 0; kind < 3; ++kind) {
      packed::Options o;
      o.layers = 1;
      o.heads = 1 + kind % 2;
      o.bits = bits;
      o.activation_bits = kind == 1 || bits == 32 ? 0 : bits;
      o.cache = kind == 1 ? 0 : 3;
      o.sparse = kind != 2;
      o.row_scales = kind == 2;
      o.position_bits = kind == 2 ? bits : 32;
      o.projected = kind == 2;
      o.vocabulary = 9;
      o.cutoffs = {4, 6};
      o.embedding_widths = {4, 2, 1};
      o.width = 4;
      o.ffn_width = 5;
      if (kind == 1) o.cutoffs = {}, o.embedding_widths = {3};
      o.seed = uint32_t(++number);
      if (!write_file(folder + "/" + std::to_string(bits) + "-bits-" + std::to_string(kind), packed::make(o).bytes())) return 1;
    }
  return 0;
}

const Bytes* running = nullptr;

// A sanitizer that found something ends the process: keep what it ran on.
void keep_input() {
  if (running) write_file("crash.bin", *running);
}

}  // namespace

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

int main(int count, char** arguments) {
  if (count == 3 && std::strcmp(arguments[1], "--make") == 0) return make_corpus(arguments[2]);
  if (count < 3) {
    std::fprintf(stderr, "usage: fuzz CORPUS COUNT [SEED]\n       fuzz --make CORPUS\n");
    return 2;
  }
  std::vector<std::string> names;
  if (DIR* folder = opendir(arguments[1])) {
    while (const dirent* entry = readdir(folder))
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    closedir(folder);
  }
  std::sort(names.begin(), names.end());
  std::vector<Bytes> corpus;
  for (const std::string& name : names) corpus.push_back(read_file(std::string(arguments[1]) + "/" + name));
  if (corpus.empty()) {
    std::fprintf(stderr, "fuzz: there is no corpus in %s\n", arguments[1]);
    return 1;
  }
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(keep_input);
  for (const Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  const long total = std::atol(arguments[2]);
  Mutator mutator(count > 3 ? uint32_t(std::atol(arguments[3])) : 1);
  for (long i = 0; i < total; ++i) {
    Bytes bytes = corpus[size_t(i) % corpus.size()];
    mutator.mutate(bytes);
    running = &bytes;
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    if ((i + 1) % 100000 == 0) std::fprintf(stderr, "%ld inputs\n", i + 1);
  }
  std::printf("%ld inputs, no harm\n", total);
  return 0;
}
