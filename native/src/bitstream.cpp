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

void IntegerStream::next(int16_t* to, int64_t count) {
  if (bits_ == 8) {
    for (int64_t i = 0; i < count; ++i) to[i] = int8_t(data_[(bit_ >> 3) + i]);
    bit_ += 8 * count;
    return;
  }
  const int64_t at_once = 57 / bits_;  // so many always lie within 8 bytes, at any offset of the first in its byte
  while (count) {
    const int64_t byte = bit_ >> 3, left = size_ - byte, n = count < at_once ? count : at_once;
    uint64_t word = 0;
    if (left >= 8) word = read_at<uint64_t>(data_ + byte);
    else std::memcpy(&word, data_ + byte, size_t(left));
    word >>= bit_ & 7;
    for (int64_t i = 0; i < n; ++i, word >>= bits_)
      to[i] = int16_t(int32_t((uint32_t(word) & mask_) ^ sign_) - int32_t(sign_));
    to += n;
    count -= n;
    bit_ += n * bits_;
  }
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
