#include "coded_stream.hpp"

#include "packed_tensor.hpp"

namespace micronet {

namespace {

constexpr int64_t kBlock = 1024;

}  // namespace

CodedStream::CodedStream(Bytes bytes, int bits, int64_t count, const std::string& name)
    : name_(name), left_(count), largest_((1 << (bits - 1)) - 1) {
  const int64_t symbols = 2 * int64_t(largest_) + 1, head = (symbols + 1) / 2, blocks = (count + kBlock - 1) / kBlock;
  const auto size = int64_t(bytes.size);
  if (size < head || (size - head) / 2 < blocks) damaged(name, "too few bytes for its blocks of codes");
  table_ = read_code(bytes.data, symbols, nullptr, false, name.c_str());
  sizes_ = bytes.data + head;
  block_ = sizes_ + 2 * blocks;
  int64_t total = head + 2 * blocks;
  for (int64_t i = 0; i < blocks; ++i) total += read_at<uint16_t>(sizes_ + 2 * i);
  if (total != size) damaged(name, "blocks of codes that do not fill it");
}

void CodedStream::begin_block() {
  const size_t size = read_at<uint16_t>(sizes_);
  bits_ = BitReader({block_, size});
  sizes_ += 2;
  block_ += size;
  in_block_ = left_ < kBlock ? left_ : kBlock;
  left_ -= in_block_;
}

void CodedStream::next(int16_t* to, int64_t count) {
  if (!count) return;
  if (!in_block_) begin_block();
  for (int64_t i = 0; i < count; ++i) to[i] = int16_t(bits_.next(table_) - largest_);
  in_block_ -= count;
  if (!in_block_ && !bits_.at_end()) damaged(name_, "a block of codes that does not end with its last integer");
}

}  // namespace micronet
