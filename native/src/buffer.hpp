// Memory for vectors: aligned, zeroed, of a fixed size.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "sizes.hpp"

namespace micronet {

template <class T>
class Buffer {
  static_assert(std::is_trivial<T>::value, "only plain numbers");
  static constexpr std::align_val_t kAlignment{64};

 public:
  Buffer() = default;
  explicit Buffer(int64_t size) : size_(size) {
    const size_t bytes = checked_bytes(size, sizeof(T));
    if (!bytes) return;
    data_ = static_cast<T*>(::operator new(bytes, kAlignment));
    std::memset(static_cast<void*>(data_), 0, bytes);
  }
  // Wrap memory that the caller frees. A copy owns its memory.
  Buffer(T* data, int64_t size) : data_(data), size_(size), owned_(false) {}
  Buffer(const Buffer& other) : Buffer(other.size_) {
    if (size_) std::memcpy(data_, other.data_, size_t(size_) * sizeof(T));
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), owned_(other.owned_) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~Buffer() {
    if (owned_) ::operator delete(data_, kAlignment);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }
  // Grow to at least this size. The contents are lost if it grows.
  void at_least(int64_t size) {
    if (size > size_) *this = Buffer(size);
  }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
  bool owned_ = true;
};

}  // namespace micronet
