// Memory for all weights of a model: one after the other in large pages.
//
// A streaming step (one token) reads every weight once. With pages of 4 kB the processor would spend up to
// half of that time on address translation.
#pragma once

#include <vector>

#include "buffer.hpp"

namespace micronet {

class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Zeros, aligned; they live as long as the arena.
  template <class T>
  Buffer<T> take(int64_t size) {
    if (size < 0 || uint64_t(size) > (uint64_t{1} << 46)) throw std::bad_alloc();
    return Buffer<T>(static_cast<T*>(allocate(size_t(size) * sizeof(T))), size);
  }

 private:
  struct Block {
    void* data;
    size_t size;
  };
  void* allocate(size_t size);

  std::vector<Block> blocks_;
  unsigned char* next_ = nullptr;
  size_t left_ = 0;
};

// Asks for large pages where all of one lies within this memory; only advice.
void advise_large_pages(void* data, size_t size);

}  // namespace micronet
