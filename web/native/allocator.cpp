// The module's memory: one list of free blocks for each size, a fifth of the C library's allocator.
//
// Sizes are rounded up to eight steps per power of two, so that a block loses at most an eighth. Blocks are never
// joined: an instance has one model, and its sessions take and give the same sizes again and again.
#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" unsigned char __heap_base;

namespace {

constexpr uint32_t kUnit = 16, kPage = 65536, kMost = 0x7fff0000, kSteps = 8;

// Before what the caller has.
struct Header {
  uint32_t list;       // which list the block goes back to
  uint32_t displaced;  // how far the caller's memory is from the block's begin
  Header* next;        // in that list, at the begin of a free block
  uint32_t unused;
};
static_assert(sizeof(Header) == kUnit);

Header* lists[32 * kSteps];
uintptr_t top = 0, end = 0;  // memory that no block has had yet

uint32_t exponent_of(uint32_t size) { return 31u - uint32_t(__builtin_clz(size)); }

// The list of a size, which is rounded up to what its blocks have.
uint32_t list_of(uint32_t& size) {
  const uint32_t exponent = exponent_of(size), step = exponent < 7 ? kUnit : 1u << (exponent - 3);
  size = (size + step - 1) / step * step;
  if (size < kUnit * kSteps) return size / kUnit;
  const uint32_t rounded = exponent_of(size);  // may be a power of two now
  return rounded * kSteps + (size >> (rounded - 3)) % kSteps;
}

void* take(uint32_t size, uint32_t alignment) {
  if (size > kMost - alignment) return nullptr;
  size += kUnit + (alignment > kUnit ? alignment : 0);
  const uint32_t list = list_of(size);
  Header* block = lists[list];
  if (block) {
    lists[list] = block->next;
  } else {
    if (!end) {
      top = (reinterpret_cast<uintptr_t>(&__heap_base) + kUnit - 1) / kUnit * kUnit;
      end = uintptr_t(__builtin_wasm_memory_size(0)) * kPage;
    }
    if (end - top < size) {
      const uint32_t pages = uint32_t((size - (end - top) + kPage - 1) / kPage);
      if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX) return nullptr;
      end += uintptr_t(pages) * kPage;
    }
    block = reinterpret_cast<Header*>(top);
    top += size;
  }
  const auto begin = reinterpret_cast<uintptr_t>(block);
  const uintptr_t given = (begin + kUnit + alignment - 1) / alignment * alignment;
  auto* header = reinterpret_cast<Header*>(given - kUnit);
  header->list = list;
  header->displaced = uint32_t(given - begin);
  return reinterpret_cast<void*>(given);
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) { return take(uint32_t(size), kUnit); }

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return take(uint32_t(size), alignment < kUnit ? kUnit : uint32_t(alignment));
}

void* calloc(std::size_t count, std::size_t size) {
  std::size_t all;
  if (__builtin_mul_overflow(count, size, &all)) return nullptr;
  void* memory = malloc(all);
  return memory ? std::memset(memory, 0, all) : nullptr;
}

void free(void* memory) {
  if (!memory) return;
  const auto given = reinterpret_cast<uintptr_t>(memory);
  const Header header = *reinterpret_cast<const Header*>(given - kUnit);
  auto* block = reinterpret_cast<Header*>(given - header.displaced);
  block->next = lists[header.list];
  lists[header.list] = block;
}

}  // extern "C"
