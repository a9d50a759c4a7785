// What fuzzers call: decodes bytes as the parts of a tensor, behind any header: integers of b bits, prefix codes in
// blocks, coded words, masks. The first byte chooses what, the second how many.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bitstream.hpp"
#include "coded_stream.hpp"
#include "coded_words.hpp"
#include "status.hpp"

using namespace micronet;

namespace {

const std::string kName = "input";

// Bytes in memory of their own, so that AddressSanitizer detects reads past the end.
class Owned {
 public:
  Owned(const uint8_t* data, size_t size) : bytes_(new uint8_t[size]), size_(size) {
    if (size) std::memcpy(bytes_.get(), data, size);
  }
  Bytes view() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  size_t size_;
};

void require(bool promised) {
  if (!promised) __builtin_trap();
}

void integers(const uint8_t* data, size_t size, int bits, int64_t count) {
  if (int64_t(size) * 8 < count * bits) return;  // packed_tensor.cpp refuses it
  const Owned bytes(data, size_t(count * bits + 7) / 8);
  std::vector<int16_t> all(static_cast<size_t>(count)), parts(all);
  IntegerStream whole(bytes.view(), bits, count, kName), pieces(bytes.view(), bits, count, kName);
  whole.next(all.data(), count);
  const int64_t half = count / 2;
  pieces.next(parts.data(), half);
  pieces.next(parts.data() + half, count - half);
  require(all == parts);
  for (const int16_t value : all) require(value >= -(1 << (bits - 1)) && value < 1 << (bits - 1));
}

// Lengths of a complete code for so many symbols: the bytes say which leaf of the tree is split next.
std::vector<uint8_t> complete_code(const uint8_t* data, size_t size, size_t symbols) {
  std::vector<uint8_t> leaves{1, 1};
  for (size_t i = 0; i < size && leaves.size() < symbols; ++i) {
    uint8_t& leaf = leaves[data[i] % leaves.size()];
    if (leaf == kLongestCode) continue;
    const uint8_t longer = ++leaf;
    leaves.push_back(longer);
  }
  std::vector<uint8_t> lengths((symbols + 1) / 2);
  for (size_t i = 0; i < leaves.size(); ++i) lengths[i / 2] = uint8_t(lengths[i / 2] | leaves[i] << (i % 2 ? 4 : 0));
  return lengths;
}

void coded(const uint8_t* data, size_t size, int bits, int64_t count, bool whole_code) {
  std::vector<uint8_t> bytes;
  if (whole_code) {  // half of the input is the code, the other half one block; other mutations rarely come so far
    const size_t half = size / 2;
    bytes = complete_code(data, half, (size_t{2} << (bits - 1)) - 1);
    const auto block = uint16_t(size - half);
    bytes.push_back(uint8_t(block & 255));
    bytes.push_back(uint8_t(block >> 8));
    bytes.insert(bytes.end(), data + half, data + size);
  } else {
    bytes.assign(data, data + size);
  }
  const Owned owned(bytes.data(), bytes.size());
  CodedStream stream(owned.view(), bits, count, kName);
  std::vector<int16_t> values(static_cast<size_t>(count));
  const int largest = (1 << (bits - 1)) - 1;
  for (int64_t at = 0; at < count;) {
    const int64_t n = std::min<int64_t>({count - at, 1024 - at % 1024, 100});
    stream.next(values.data() + at, n);
    for (int64_t i = at; i < at + n; ++i) require(values[size_t(i)] >= -largest && values[size_t(i)] <= largest);
    at += n;
  }
}

void words(const uint8_t* data, size_t size, int64_t count) {
  const Owned owned(data, size);
  const Buffer<uint8_t> text = decode_words(owned.view(), count);
  int64_t found = 0;
  for (int64_t i = 0; i < text.size(); ++i) found += text[i] == '\n';
  require(found == count);
}

void mask(const uint8_t* data, size_t size, int64_t count) {
  if (int64_t(size) * 8 < count) return;
  const Owned owned(data, size_t(count + 7) / 8);
  int64_t set = 0;
  for (int64_t i = 0; i < count; ++i) set += data[i / 8] >> (i % 8) & 1;
  check_mask(owned.view(), count, set, kName);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const int kind = data[0] % 5, bits = 2 + data[0] / 5 % 15;
  const int64_t count = data[1] * (data[0] & 128 ? 9 : 1);  // also more than one block
  data += 2;
  size -= 2;
  try {
    if (kind == 0) integers(data, size, bits, count);
    if (kind == 1 || kind == 2) coded(data, size, std::min(bits, kWidestCoded), count, kind == 2 && count <= 1024);
    if (kind == 3) words(data, size, count);
    if (kind == 4) mask(data, size, count);
  } catch (const Failure&) {
  }
  return 0;
}
