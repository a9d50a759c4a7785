// Memory for all weights of a model, one after the other, in large pages.
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

  // Return zeroed, aligned memory that lives as long as the arena.
  template <class T>
  Buffer<T> take(int64_t size) {
    return Buffer<T>(static_cast<T*>(allocate(checked_bytes(size, sizeof(T)))), size);
  }

 private:
  struct Block {
    void* data;
    size_t size;
  };
  void* allocate(size_t size);

  std::vector<Block> blocks_;
  [[maybe_unused]] unsigned char* next_ = nullptr;  // the next free byte, where memory is allocated in blocks
  [[maybe_unused]] size_t left_ = 0;
};

// Ask the system for large pages in this memory. It may decline.
void advise_large_pages(void* data, size_t size);

}  // namespace micronet
