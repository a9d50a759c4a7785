// Runs the fuzz target on mutations of the corpus, for compilers without libFuzzer.
//
//   fuzz CORPUS COUNT [SEED]     COUNT mutated inputs; the same seed gives the same ones
//   fuzz --make CORPUS           writes the corpus: small packed files of all kinds
//
// Mutations know the format: besides bits, bytes and lengths they change numbers in the header, copy
// parts of it, and put special floats into tensors. An input that crashes is kept in `crash.bin`.
#include <dirent.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "mutator.hpp"
#include "packed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using fuzz::Bytes;
using fuzz::Mutator;

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
      o.ngrams = kind == 0;
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

// A sanitizer that finds something ends the process: keep the input that it ran on.
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
