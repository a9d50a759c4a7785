// Allocations, input and output fail at every call site, one after the other: an error comes back, nothing crashes or
// leaks, and no file is left half-written.
//
// This program replaces `operator new`, `read` and what writes a file, so that the n-th call can be made to fail.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
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
#include "text_model.hpp"
#include "use_model.hpp"

namespace {

long allocations_left = -1;  // how many succeed before all fail once; -1: none fails
long reads_left = -1;
long writes_left = -1;  // calls of write, fsync, fchmod and rename

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
    std::FILE* opened = file < 0 ? nullptr : ::fdopen(file, "wb");
    CHECK(opened && std::fwrite(bytes.data(), 1, bytes.size(), opened) == bytes.size() && std::fclose(opened) == 0);
  }
  ~Path() { ::unlink(name); }
};

// A folder for one file.
struct Folder {
  char name[32] = "/tmp/micronet-XXXXXX";
  std::string file;
  Folder() {
    CHECK(::mkdtemp(name));
    file = std::string(name) + "/me";
  }
  ~Folder() {
    ::unlink(file.c_str());
    ::rmdir(name);
  }
  std::string contents() const {
    std::string bytes;
    if (std::FILE* opened = std::fopen(file.c_str(), "rb")) {
      for (int c; (c = std::fgetc(opened)) != EOF;) bytes += char(c);
      std::fclose(opened);
    }
    return bytes;
  }
  int entries() const {
    int count = 0;
    DIR* folder = ::opendir(name);
    while (const dirent* entry = ::readdir(folder)) count += entry->d_name[0] != '.';
    ::closedir(folder);
    return count;
  }
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

extern "C" ssize_t write(int file, const void* from, size_t size) {
  if (fails(writes_left)) {
    errno = ENOSPC;
    return -1;
  }
  return ssize_t(::syscall(SYS_write, file, from, size > 100 ? 100 : size));  // never all at once
}

// Nothing is synced: these files need not outlive the machine, and there are thousands.
extern "C" int fsync(int) { return fails(writes_left) ? (errno = EIO, -1) : 0; }

extern "C" int fchmod(int file, mode_t mode) noexcept {
  return fails(writes_left) ? (errno = EPERM, -1) : int(::syscall(SYS_fchmod, file, mode));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  return fails(writes_left) ? (errno = EACCES, -1) : ::renameat(AT_FDCWD, from, AT_FDCWD, to);
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

TEST(every_allocation_of_text_and_memories_may_fail) {
  const mn_model* model = packed::text_model(2);
  const Folder folder;
  const std::string given = "ab a. Zorb (abc) ";
  const char* const words[] = {"knob"};
  const size_t sizes[] = {4};
  const uint32_t counts[] = {2};
  mn_error error;
  long failures = 0;
  // Twice, because what is computed on first use allocates only once.
  for (int question = 0; question < 2 * 14; ++question) {
    for (long n = 0;; ++n) {
      mn_text *text = nullptr, *other = nullptr;
      mn_personal* me = nullptr;
      mn_words* found = nullptr;
      std::vector<uint8_t> saved(1 << 16);
      size_t size = saved.size();
      int known = 0;
      CHECK(mn_text_read(model, given.data(), given.size(), &text, &error) == MN_OK);
      CHECK(mn_text_save(text, saved.data(), &size, &error) == MN_OK);
      CHECK(mn_personal_open(model, folder.file.c_str(), &me, &error) == MN_OK);
      CHECK(mn_personal_learn(me, given.data(), given.size(), nullptr, &error) == MN_OK);
      mn_status status = MN_OK;
      allocations_left = n;
      switch (question % 14) {
        case 0: status = mn_text_read(model, given.data(), given.size(), &other, &error); break;
        case 1: status = mn_text_feed(text, given.data(), given.size(), &error); break;
        case 2: status = mn_text_next(text, 3, &found, &error); break;
        case 3: status = mn_text_suggest(text, 3, &found, &error); break;
        case 4: status = mn_text_complete(text, "a", 1, 3, &found, &error); break;
        case 5: status = mn_text_write(text, 0, 0, 1, &found, &error); break;
        case 6: status = mn_text_restore(model, saved.data(), size, &other, &error); break;
        case 7: status = mn_model_score_text(model, given.data(), given.size(), 1, &found, &error); break;
        case 8: status = mn_personal_learn(me, given.data(), given.size(), nullptr, &error); break;
        case 9: status = mn_personal_words(me, &found, &error); break;
        case 10: status = mn_personal_merge(me, words, sizes, counts, 1, &error); break;
        case 11: status = mn_personal_forget(me, "Zorb", 4, &known, &error); break;
        case 12: status = mn_text_recall(text, me, &error); break;
        default: status = mn_personal_clear(me, &error); break;
      }
      const bool failed = allocations_left < 0;
      allocations_left = -1;
      CHECK(status == (failed ? MN_ERROR_MEMORY : MN_OK));
      CHECK(folder.entries() == 1);
      failures += failed;
      // What failed can be asked again.
      mn_words_free(found);
      found = nullptr;
      CHECK(mn_text_suggest(text, 3, &found, &error) == MN_OK);
      mn_words_free(found);
      found = nullptr;
      CHECK(mn_personal_words(me, &found, &error) == MN_OK);
      mn_words_free(found);
      mn_personal_close(me);
      mn_text_free(other);
      mn_text_free(text);
      if (!failed) break;
    }
  }
  std::printf("%ld allocations failed one by one\n", failures);
}

TEST(every_write_of_a_memory_may_fail) {
  const mn_model* model = packed::text_model(2);
  const Folder folder;
  mn_error error;
  mn_personal* me = nullptr;
  CHECK(mn_personal_open(model, folder.file.c_str(), &me, &error) == MN_OK);
  CHECK(mn_personal_learn(me, "Zorb a ", 7, nullptr, &error) == MN_OK);
  std::string before = folder.contents();
  long refused = 0;
  for (long n = 0;; ++n) {
    writes_left = n;
    const mn_status status = mn_personal_learn(me, "knob ab ", 8, nullptr, &error);
    const bool failed = writes_left < 0;
    writes_left = -1;
    const std::string after = folder.contents();
    // That the folder cannot be synced comes too late: the new file is there.
    CHECK(status == MN_OK || (failed && status == MN_ERROR_FILE));
    CHECK((status == MN_OK) == (after != before));
    CHECK(folder.entries() == 1);
    refused += status != MN_OK;
    before = after;
    if (!failed) break;
  }
  CHECK(refused >= 5);  // two calls of write and more, fchmod, fsync, rename
  mn_personal_close(me);
}
