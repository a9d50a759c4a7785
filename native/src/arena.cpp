#include "arena.hpp"

#include <cstdlib>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define MICRONET_MMAP
#endif

// Under AddressSanitizer every matrix has its own allocation, so that reads past its end are detected.
#if defined(__SANITIZE_ADDRESS__)
#undef MICRONET_MMAP
#endif

namespace micronet {

namespace {

[[maybe_unused]] constexpr size_t kLargePage = size_t{2} << 20, kBlock = size_t{16} << 20;
constexpr size_t kAlignment = 64;

}  // namespace

void advise_large_pages(void* data, size_t size) {
#if defined(MADV_HUGEPAGE)
  const auto begin = (reinterpret_cast<uintptr_t>(data) + kLargePage - 1) / kLargePage * kLargePage;
  const auto end = (reinterpret_cast<uintptr_t>(data) + size) / kLargePage * kLargePage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  (void)data, (void)size;
#endif
}

#if defined(MICRONET_MMAP)

// Fresh pages are zero and use no memory until they are written.
void* Arena::allocate(size_t size) {
  size = (size + kAlignment - 1) / kAlignment * kAlignment;
  if (size > left_) {
    const size_t room = size > kBlock ? size : kBlock;
    blocks_.reserve(blocks_.size() + 1);
    void* data = ::mmap(nullptr, room + kLargePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
    blocks_.push_back({data, room + kLargePage});
    advise_large_pages(data, room + kLargePage);
    const auto begin = reinterpret_cast<uintptr_t>(data);
    next_ = reinterpret_cast<unsigned char*>((begin + kLargePage - 1) / kLargePage * kLargePage);
    left_ = room;
  }
  void* place = next_;
  next_ += size;
  left_ -= size;
  return place;
}

Arena::~Arena() {
  for (const Block& block : blocks_) ::munmap(block.data, block.size);
}

#else

void* Arena::allocate(size_t size) {
  size = (size + kAlignment - 1) / kAlignment * kAlignment;
  blocks_.reserve(blocks_.size() + 1);
  void* data = ::operator new(size, std::align_val_t{kAlignment});
  std::memset(data, 0, size);
  blocks_.push_back({data, size});
  return data;
}

Arena::~Arena() {
  for (const Block& block : blocks_) ::operator delete(block.data, std::align_val_t{kAlignment});
}

#endif

}  // namespace micronet
