#include "spelling.hpp"

#include <algorithm>
#include <cmath>

#include "status.hpp"

namespace micronet {

namespace {

constexpr uint8_t kEnd = 0x0A;  // begins and ends a word
constexpr int64_t kLargestOrder = 8;
constexpr size_t kHead = 9;

uint32_t count_of(uint8_t byte) { return byte < 16 ? byte : uint32_t(16 + byte % 16) << (byte / 16 - 1); }

[[noreturn]] void damaged(const char* why) {
  fail(MN_ERROR_FORMAT, "the spelling model has %s; it is damaged, pack the model again", why);
}

}  // namespace

Spelling::Spelling(Bytes data) {
  if (data.size < kHead) damaged("too few bytes");
  order_ = data.data[0];
  if (order_ < 1 || order_ > kLargestOrder) damaged("an order that is not 1 to 8");
  outside_ = read_at<double>(data.data + 1);
  if (!(outside_ > 0 && outside_ <= 1)) damaged("a mass outside the vocabulary that is not above 0 and at most 1");
  size_t at = kHead;
  auto take = [&] {
    if (at >= data.size) damaged("no end: it is truncated");
    return data.data[at++];
  };
  for (int64_t i = 0; i < order_; ++i) {
    const uint8_t discount = take();
    if (!discount) damaged("a discount that is 0");
    discounts_.push_back(double(discount) / 256);
  }
  // A node takes at least 2 bytes of the file, so there cannot be more nodes.
  nodes_.reserve(data.size / 2);
  nodes_.emplace_back();
  nodes_[0].children = take();
  if (!nodes_[0].children) damaged("no byte to begin with");
  nodes_[0].rest = count_of(take());
  size_t level = 0;
  for (int64_t depth = 1; depth <= order_; ++depth) {
    const size_t end = nodes_.size();
    for (size_t parent = level; parent < end; ++parent) {
      nodes_[parent].first = uint32_t(nodes_.size());
      nodes_[parent].total = nodes_[parent].rest;
      for (uint32_t i = 0; i < nodes_[parent].children; ++i) {
        Node node;
        node.symbol = take();
        node.count = count_of(take());
        if ((i && node.symbol <= nodes_.back().symbol) || !node.count)
          damaged("a byte out of order or without a count");
        if (depth < order_ && (node.children = take()) != 0) node.rest = count_of(take());
        nodes_[parent].total += node.count;
        nodes_.push_back(node);
      }
    }
    level = end;
  }
  if (at != data.size) damaged("bytes after its last node");
}

const Spelling::Node* Spelling::child(const Node& node, uint8_t symbol) const {
  const Node* begin = nodes_.data() + node.first;
  const Node* end = begin + node.children;
  const Node* found =
      std::lower_bound(begin, end, symbol, [](const Node& a, uint8_t wanted) { return a.symbol < wanted; });
  return found != end && found->symbol == symbol ? found : nullptr;
}

double Spelling::chance(const uint8_t* context, int64_t length, uint8_t symbol) const {
  double chance = 1.0 / 256;
  for (int64_t used = 0; used <= length; ++used) {
    const Node* node = nodes_.data();
    for (int64_t i = length - used; i < length && node; ++i) node = child(*node, context[i]);
    if (!node || !node->children) continue;
    const double discount = discounts_[size_t(used)], total = double(node->total);
    chance *= (discount * double(node->children) + double(node->rest)) / total;
    if (const Node* counted = child(*node, symbol)) chance += (double(counted->count) - discount) / total;
  }
  return chance;
}

double Spelling::log_probability(std::string_view word) const {
  uint8_t context[kLargestOrder];
  int64_t held = 0;
  double total = 0;
  auto push = [&](uint8_t symbol) {
    if (held == order_ - 1 && held) std::copy(context + 1, context + held, context);
    if (order_ > 1) context[held == order_ - 1 ? held - 1 : held++] = symbol;
  };
  push(kEnd);
  for (const char c : word) {
    total += std::log(chance(context, held, uint8_t(c)));
    push(uint8_t(c));
  }
  return total + std::log(chance(context, held, kEnd)) - std::log(outside_);
}

}  // namespace micronet
