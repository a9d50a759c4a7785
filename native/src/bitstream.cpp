#include "bitstream.hpp"

#include "status.hpp"

namespace micronet {

IntegerStream::IntegerStream(Bytes bytes, int bits, int64_t count, const std::string& name)
    : data_(bytes.data),
      size_(int64_t(bytes.size)),
      bits_(bits),
      mask_((uint32_t{1} << bits) - 1),
      sign_(uint32_t{1} << (bits - 1)) {
  const int64_t used = count * bits;
  if (used % 8 && bytes.data[used / 8] >> (used % 8))
    fail(MN_ERROR_FORMAT, "the tensor %.100s has bits behind its last integer; pack the model again",
         name.c_str());
}

void check_mask(Bytes mask, int64_t n, int64_t nonzeros, const std::string& name) {
  int64_t count = 0;
  for (int64_t at = 0; at < n; at += 64) count += __builtin_popcountll(mask_word(mask, at));
  if (n % 8 && mask.data[mask.size - 1] >> (n % 8))
    fail(MN_ERROR_FORMAT, "the tensor %.100s has bits behind the end of its mask; pack the model again",
         name.c_str());
  if (count != nonzeros)
    fail(MN_ERROR_FORMAT, "the tensor %.100s has %lld bits in its mask for %lld non-zeros; pack the model again",
         name.c_str(), static_cast<long long>(count), static_cast<long long>(nonzeros));
}

}  // namespace micronet
