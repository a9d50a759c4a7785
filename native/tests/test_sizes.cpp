// Sizes that cannot wrap: what a file of lies asks for ends in an exception, on 32 bits, too.
#include <new>

#include "arena.hpp"
#include "check.hpp"
#include "sizes.hpp"

using namespace micronet;

namespace {

template <class Body>
bool refuses(Body body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

}  // namespace

TEST(bytes_that_would_wrap_are_refused) {
  CHECK(checked_bytes(0, 8) == 0 && checked_bytes(5, 8) == 40);
  CHECK(checked_bytes(int64_t(kLargestMemory), 1) == kLargestMemory);
  CHECK(refuses([] { checked_bytes(int64_t(kLargestMemory) + 1, 1); }));
  for (int shift = 0; shift < 63; ++shift)  // where the low half of the product is small
    for (size_t each : {1, 2, 4, 8}) {
      const int64_t count = (int64_t{1} << shift) + 1;
      const bool fits = uint64_t(count) <= kLargestMemory / each;
      CHECK(refuses([&] { checked_bytes(count, each); }) == !fits);
    }
  CHECK(refuses([] { checked_bytes(-1, 8); }) && refuses([] { checked_bytes(INT64_MIN, 1); }));
}

// 2^30 + 1 elements of 4 bytes are 4 bytes in 32 bits.
TEST(buffers_and_arenas_refuse_what_would_wrap) {
  Arena arena;
  for (int64_t size : {int64_t{-1}, INT64_MAX, (int64_t{1} << 62) + 1}) {
    CHECK(refuses([&] { Buffer<float> buffer(size); }));
    CHECK(refuses([&] { arena.take<float>(size); }));
  }
  if (sizeof(size_t) > 4) return;
  CHECK(refuses([] { Buffer<float> buffer((int64_t{1} << 30) + 1); }));
  CHECK(refuses([&] { arena.take<float>((int64_t{1} << 30) + 1); }));
  CHECK(refuses([&] { arena.take<double>((int64_t{1} << 29) + 1); }));
  CHECK(arena.take<double>(8).size() == 8);
}

TEST(products_stop_at_their_limit) {
  CHECK(product_up_to(3, 4, 100) == 12 && product_up_to(30, 4, 100) == 100);
  CHECK(product_up_to(INT64_MAX, INT64_MAX, 7) == 7 && product_up_to(0, INT64_MAX, 7) == 0);
}
