// What the engine needs of a C++ run-time library in WebAssembly, where Debian's has no exceptions.
//
// Exceptions are WebAssembly's own (clang's -fwasm-exceptions): a throw unwinds the stack and runs destructors, so
// that an error frees what it made. No catch clause has a type (native/src/api_guard.hpp), so no tables are read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

using Destroy = void* (*)(void*);  // destructors return their object in WebAssembly

struct Header {
  alignas(16) Destroy destroy;
};

Header* header_of(void* thrown) { return reinterpret_cast<Header*>(static_cast<char*>(thrown) - sizeof(Header)); }

// One exception is on its way at a time: nothing is thrown while another is caught.
alignas(16) char reserve[1024];  // where there is no memory for an exception that says so
void* caught = nullptr;

void* allocate(std::size_t size, std::size_t alignment) {
  if (!size) size = 1;
  if (size > PTRDIFF_MAX) throw std::bad_alloc();
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(size)
                     : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

extern "C" {

void* __cxa_allocate_exception(std::size_t size) {
  void* memory = std::malloc(size + sizeof(Header));
  if (!memory) {
    if (size + sizeof(Header) > sizeof reserve) std::abort();
    memory = reserve;
  }
  return static_cast<char*>(memory) + sizeof(Header);
}

void __cxa_free_exception(void* thrown) {
  void* memory = header_of(thrown);
  if (memory != reserve) std::free(memory);
}

[[noreturn]] void __cxa_throw(void* thrown, void*, Destroy destroy) {
  header_of(thrown)->destroy = destroy;
  __builtin_wasm_throw(0, thrown);
}

void* __cxa_begin_catch(void* thrown) noexcept {
  caught = thrown;
  return thrown;
}

void __cxa_end_catch() {
  if (!caught) return;
  if (auto destroy = header_of(caught)->destroy) destroy(caught);
  __cxa_free_exception(caught);
  caught = nullptr;
}

[[noreturn]] void __cxa_rethrow() {
  void* thrown = caught;
  caught = nullptr;
  __builtin_wasm_throw(0, thrown);
}

// What is thrown refers to these tables of its type, which nobody reads: they need not be the library's.
const void* _ZTVN10__cxxabiv117__class_type_infoE[3] = {};
const void* _ZTVN10__cxxabiv120__si_class_type_infoE[3] = {};
const void* _ZTVN10__cxxabiv121__vmi_class_type_infoE[3] = {};

// The library's last words would need its printing.
[[noreturn]] void abort_message(const char*, ...) { __builtin_trap(); }

// Objects that live as long as the module need no end.
int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }

}  // extern "C"

void* operator new(std::size_t size) { return allocate(size, 0); }
void* operator new[](std::size_t size) { return allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, std::size_t(alignment)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
