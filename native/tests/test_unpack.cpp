// Matrices in memory against the bits of the file, which this test reads one by one.
#include <vector>

#include "bytes.hpp"
#include "check.hpp"
#include "dispatch.hpp"
#include "model.hpp"
#include "packed.hpp"

using namespace micronet;

namespace {

// Return a tensor's integers in order, with the zeros of a sparse tensor.
std::vector<int> integers_of(packed::File& file, const std::string& name, int bits, int64_t n) {
  const std::vector<uint8_t>* mask = nullptr;
  for (const packed::Tensor& tensor : file.tensors)
    if (tensor.name == name + ".mask") mask = &tensor.bytes;
  const std::vector<uint8_t>& stored = file.tensor(name + ".integers").bytes;
  std::vector<int> integers;
  size_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (mask && !((*mask)[size_t(i / 8)] >> i % 8 & 1)) {
      integers.push_back(0);
      continue;
    }
    int value = 0;
    for (int b = 0; b < bits; ++b, ++at) value |= (stored[at / 8] >> at % 8 & 1) << b;
    integers.push_back(value >= 1 << (bits - 1) ? value - (1 << bits) : value);
  }
  CHECK(at == 8 * stored.size() || stored.size() == at / 8 + 1);
  return integers;
}

void check_matrix(packed::File& file, const std::string& name, const Matrix& matrix) {
  const std::vector<int> wanted = integers_of(file, name, matrix.bits, matrix.rows * matrix.columns);
  bool same = true;
  for (int64_t r = 0; r < matrix.rows; ++r)
    for (int64_t c = 0; c < matrix.columns; ++c)
      same = same && matrix.integer(r, c) == wanted[size_t(r * matrix.columns + c)];
  CHECK(same);
}

}  // namespace

// Widths that end within a pair, a group of 9-bit weights and a piece of 64, and rows that begin within them.
TEST(weights_are_those_of_the_file) {
  for (const char* kernels : check::kernels())
    for (int bits : {2, 4, 5, 8, 9, 12, 16})
      for (bool sparse : {false, true})
        for (int64_t width : {5, 20, 71}) {
          packed::Options o;
          o.bits = bits;
          o.activation_bits = 9;
          o.sparse = sparse;
          o.vocabulary = 300;
          o.cutoffs = {40, 100};
          o.embedding_widths = {width, width == 20 ? 16 : 3, width == 20 ? 4 : 1};
          o.width = width;
          o.ffn_width = 37;
          packed::File file = packed::make(o);
          const std::vector<uint8_t> bytes = file.bytes();
          const Model model(Bytes{bytes.data(), bytes.size()}, choose_kernels(kernels));
          for (size_t i = 0; i < model.bins.size(); ++i)
            check_matrix(file, "embedding.tables." + std::to_string(i), model.bins[i].table);
          for (size_t l = 0; l < model.layers.size(); ++l) {
            const std::string block = "blocks." + std::to_string(l) + ".";
            check_matrix(file, block + "attention.qkv.weight", model.layers[l].qkv);
            check_matrix(file, block + "outer.weight", model.layers[l].outer);
          }
        }
}
