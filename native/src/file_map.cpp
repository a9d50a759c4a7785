#include "file_map.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sizes.hpp"
#include "status.hpp"

#if defined(__wasm__)

namespace micronet {

FileMap::FileMap(const char* path) {
  fail(MN_ERROR_FILE, "%.300s cannot be opened: WebAssembly has no files; open its bytes", path);
}

FileMap::~FileMap() = default;

void FileMap::release(Bytes) const {}

}  // namespace micronet

#elif defined(__unix__) || defined(__APPLE__)

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace micronet {

FileMap::FileMap(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // opening a pipe must not block
  if (file < 0)
    fail(MN_ERROR_FILE, "%.300s cannot be opened: %s", path, std::strerror(errno));
  struct stat status;
  const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const auto size = regular ? size_t(status.st_size) : 0;
  void* data = MAP_FAILED;
  const bool fits = !regular || uint64_t(status.st_size) <= kLargestMemory;
  if (size && fits) data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int why = errno;
  size_t done = 0;
  while (data != MAP_FAILED && done < size) {
    const ssize_t count = ::read(file, static_cast<uint8_t*>(data) + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    why = count < 0 ? errno : 0;
    if (count <= 0) break;
    done += size_t(count);
  }
  ::close(file);
  if (!regular) fail(MN_ERROR_FILE, "%.300s is not a file; give a packed model", path);
  if (!status.st_size) fail(MN_ERROR_FORMAT, "%.300s is empty; a packed model has at least a header", path);
  if (!fits)
    fail(MN_ERROR_FILE, "%.300s has %lld bytes, too many for this platform's memory; take a smaller model", path,
         static_cast<long long>(status.st_size));
  if (data == MAP_FAILED)
    fail(MN_ERROR_MEMORY, "there is no memory for the %zu bytes of %.300s: %s", size, path, std::strerror(why));
  bytes_ = {static_cast<const uint8_t*>(data), size};
  if (done == size) return;
  ::munmap(data, size);
  bytes_ = {};
  fail(MN_ERROR_FILE, "%.300s cannot be read beyond byte %zu of %zu: %s; restore the file", path, done, size,
       why ? std::strerror(why) : "it became shorter");
}

FileMap::~FileMap() { ::munmap(const_cast<uint8_t*>(bytes_.data), bytes_.size); }

void FileMap::release(Bytes part) const {
  const auto page = uintptr_t(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(part.data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(part.data) + part.size) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace micronet

#else

#include <new>

namespace micronet {

FileMap::FileMap(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (!file) fail(MN_ERROR_FILE, "%.300s cannot be opened: %s", path, std::strerror(errno));
  std::fseek(file, 0, SEEK_END);
  const long size = std::ftell(file);
  std::fseek(file, 0, SEEK_SET);
  auto* data = size > 0 ? new (std::nothrow) uint8_t[size_t(size)] : nullptr;
  const bool complete = data && std::fread(data, 1, size_t(size), file) == size_t(size);
  std::fclose(file);
  if (!complete) {
    delete[] data;
    fail(MN_ERROR_FILE, "%.300s cannot be read", path);
  }
  bytes_ = {data, size_t(size)};
}

FileMap::~FileMap() { delete[] bytes_.data; }

void FileMap::release(Bytes) const {}

}  // namespace micronet

#endif
