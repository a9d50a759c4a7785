// Allocations and input fail at every call site, one after the other: an error comes back, nothing crashes or leaks.
//
// This program replaces `operator new` and `read`, so that the n-th call of either can be made to fail.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "check.hpp"
#include "micronet.h"
#include "packed.hpp"
#include "use_model.hpp"

namespace {

long allocations_left = -1;  // how many succeed before all fail once; -1: none fails
long reads_left = -1;

bool fails(long& left) {
  if (left < 0) return false;
  return left-- == 0;
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (fails(allocations_left)) throw std::bad_alloc();
  void* memory = alignment > alignof(std::max_align_t)
                     ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                     : std::malloc(size ? size : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}

struct Path {
  char name[32] = "/tmp/micronet-XXXXXX";
  Path() {
    const auto bytes = packed::make({}).bytes();
    const int file = ::mkstemp(name);
    CHECK(file >= 0 && ::write(file, bytes.data(), bytes.size()) == ssize_t(bytes.size()));
    ::close(file);
  }
  ~Path() { ::unlink(name); }
};

}  // namespace

void* operator new(std::size_t size) { return allocate(size, 0); }
void* operator new[](std::size_t size) { return allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, std::size_t(alignment)); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return allocate(size, std::size_t(alignment)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" ssize_t read(int file, void* to, size_t size) {
  if (fails(reads_left)) {
    errno = EIO;
    return -1;
  }
  return ssize_t(::syscall(SYS_read, file, to, size > 1000 ? 1000 : size));  // never all at once
}

TEST(every_allocation_of_opening_may_fail) {
  const auto bytes = packed::make({}).bytes();
  for (long n = 0;; ++n) {
    mn_model* model = nullptr;
    mn_error error;
    allocations_left = n;
    const mn_status status = mn_model_open_bytes(bytes.data(), bytes.size(), "scalar", &model, &error);
    const bool failed = allocations_left < 0;
    allocations_left = -1;
    CHECK(status == (failed ? MN_ERROR_MEMORY : MN_OK));
    CHECK((status == MN_OK) == (model != nullptr));
    mn_model_close(model);
    if (!failed) {
      std::printf("%ld allocations failed one by one\n", n);
      break;
    }
  }
}

TEST(every_allocation_of_use_may_fail) {
  const auto bytes = packed::make({}).bytes();
  mn_model* model = nullptr;
  mn_error error;
  CHECK(mn_model_open_bytes(bytes.data(), bytes.size(), "scalar", &model, &error) == MN_OK);
  const int32_t ids[] = {1, 2, 3, 4, 5, 6, 7};
  float numbers[24];
  int32_t best[24];
  // Each question by itself, on a session that has read something.
  for (int question = 0; question < 9; ++question) {
    for (long n = 0;; ++n) {
      mn_session *session = nullptr, *other = nullptr;
      CHECK(mn_session_start(model, &session, &error) == MN_OK);
      if (question) CHECK(mn_session_feed_many(session, ids, 7, &error) == MN_OK);
      std::vector<uint8_t> saved(1 << 16);
      size_t size = saved.size();
      int32_t found = 0;
      if (question == 6) CHECK(mn_session_save(session, saved.data(), &size, &error) == MN_OK);
      allocations_left = n;
      mn_status status = MN_OK;
      switch (question) {
        case 0: status = mn_session_feed_many(session, ids, 7, &error); break;
        case 1: status = mn_session_log_distribution(session, numbers, &error); break;
        case 2: status = mn_session_top_k(session, 3, best, numbers, &error); break;
        case 3: status = mn_session_complete(session, "w", 1, 3, best, numbers, &found, &error); break;
        case 4: status = mn_session_sample(session, 0.5, 0.9, 3, 0.9, best, &error); break;
        case 5: status = mn_session_fork(session, &other, &error); break;
        case 6: status = mn_session_restore(model, saved.data(), size, &other, &error); break;
        case 7: status = mn_model_score(model, ids, 7, 1, numbers, &error); break;
        default: status = mn_session_save(session, saved.data(), &size, &error); break;
      }
      const bool failed = allocations_left < 0;
      allocations_left = -1;
      CHECK(status == (failed ? MN_ERROR_MEMORY : MN_OK));
      // What failed can be asked again.
      if (failed && question) CHECK(mn_session_log_distribution(session, numbers, &error) == MN_OK);
      mn_session_free(other);
      mn_session_free(session);
      if (!failed) break;
    }
  }
  mn_model_close(model);
}

TEST(every_read_may_fail) {
  const Path path;
  for (long n = 0;; ++n) {
    mn_model* model = nullptr;
    mn_error error;
    reads_left = n;
    const mn_status status = mn_model_open(path.name, "scalar", &model, &error);
    const bool failed = reads_left < 0;
    reads_left = -1;
    CHECK(status == (failed ? MN_ERROR_FILE : MN_OK));
    mn_model_close(model);
    if (!failed) break;
    CHECK(std::string(error.message).find("cannot be read beyond byte") != std::string::npos);
  }
}
