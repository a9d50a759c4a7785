// Hashes of every distribution along random texts: fingerprint KERNELS POSITIONS [random] [MODEL…]
// `random` stands for models with random weights: 9, 8 and 16 bits, pruned, unquantized.
// The output of AVX2 here and of NEON under an emulator must be the same.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "bytes.hpp"
#include "micronet.h"
#include "packed.hpp"

namespace {

bool show(const char* name, const std::vector<uint8_t>& bytes, const char* kernels, int positions) {
  mn_error error;
  mn_model* model = nullptr;
  mn_session* session = nullptr;
  if (mn_model_open_bytes(bytes.data(), bytes.size(), kernels, &model, &error) != MN_OK ||
      mn_session_start(model, &session, &error) != MN_OK) {
    std::fprintf(stderr, "%s: %s\n", name, error.message);
    return false;
  }
  const int32_t words = mn_model_vocabulary_size(model);
  std::vector<float> out(static_cast<size_t>(words));
  std::mt19937 random(1);
  uint64_t hash = 0;
  bool good = true;
  for (int i = 0; i < positions && good; ++i) {
    good = mn_session_feed(session, int32_t(random() % uint32_t(words)), &error) == MN_OK &&
           mn_session_log_distribution(session, out.data(), &error) == MN_OK;
    hash = micronet::hash_bytes({reinterpret_cast<const uint8_t*>(out.data()), 4 * out.size()}, hash);
  }
  std::printf("%s: %d positions, %016llx\n", name, positions, static_cast<unsigned long long>(hash));
  mn_session_free(session);
  mn_model_close(model);
  return good;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: fingerprint KERNELS POSITIONS [random] [MODEL...]\n");
    return 2;
  }
  const int positions = std::atoi(arguments[2]);
  bool good = true;
  struct Case {
    const char* name;
    int bits, activation_bits;
    bool sparse;
  };
  const bool random = count > 3 && !std::strcmp(arguments[3], "random");
  for (const Case& c : {Case{"9 bits", 9, 9, false}, Case{"8 bits", 8, 8, false}, Case{"pruned", 9, 9, true},
                        Case{"unquantized", 32, 0, false}, Case{"16 bits", 16, 16, false}}) {
    if (!random) break;
    packed::Options options;
    options.vocabulary = 1200;
    options.cutoffs = {200, 600};
    options.embedding_widths = {48, 24, 4};
    options.width = 48, options.layers = 3, options.heads = 2, options.key_width = 16, options.value_width = 16;
    options.ffn_width = 80, options.context = 40, options.cache = 100;
    options.bits = c.bits, options.activation_bits = c.activation_bits, options.sparse = c.sparse;
    good = show(c.name, packed::make(options).bytes(), arguments[1], positions) && good;
  }
  for (int i = random ? 4 : 3; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    good = show(std::strrchr(arguments[i], '/') ? std::strrchr(arguments[i], '/') + 1 : arguments[i], bytes, arguments[1],
                positions) && good;
  }
  return good ? 0 : 1;
}
