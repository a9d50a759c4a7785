#include "personal_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "status.hpp"

#if !defined(MICRONET_WITHOUT_RECOLLECTIONS)

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace micronet {

namespace {

constexpr int kTries = 1000, kPauseMilliseconds = 10;  // wait ten seconds for another process that changes the memory

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

[[noreturn]] void fail_with(const std::string& path, const char* what) {
  fail(MN_ERROR_FILE, "%.300s %s: %s", path.c_str(), what, std::strerror(errno));
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return slash ? path.substr(0, slash) : "/";
}

std::string contents(const std::string& path, int file, size_t most) {
  std::string bytes;
  char block[1 << 16];
  for (;;) {
    const ssize_t count = ::read(file, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with(path, "cannot be read");
    if (!count) return bytes;
    bytes.append(block, size_t(count));
    if (bytes.size() > most) fail(MN_ERROR_FORMAT, "%.300s is larger than a memory can be; choose another path", path.c_str());
  }
}

void write_all(const std::string& path, int file, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_with(path, "cannot be written");
    done += size_t(count);
  }
}

// Take the lock of a folder. It ends with the process and leaves no file behind.
void lock(const std::string& path, int folder) {
  for (int i = 0; ::flock(folder, LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno != EWOULDBLOCK && errno != EINTR) fail_with(path, "cannot be locked");
    if (i == kTries) fail(MN_ERROR_FILE, "%.300s is being changed by another process; try again later", path.c_str());
    const timespec pause{0, kPauseMilliseconds * 1000000L};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace

PersonalFile::PersonalFile(const Model& model, std::string path) : model_(&model), path_(std::move(path)) {
  if (!model.config.cache) fail(MN_ERROR_ARGUMENT, "the model has no cache, so it has no personal memory");
  if (path_.empty()) fail(MN_ERROR_ARGUMENT, "a personal memory needs a path");
  read();
}

Memories PersonalFile::read() const {
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // opening a pipe must not block
  if (file.get() < 0) {
    if (errno == ENOENT) return {};
    fail_with(path_, "cannot be opened");
  }
  struct stat status;
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    fail(MN_ERROR_FILE, "%.300s is not a regular file; choose another path", path_.c_str());
  if (status.st_mode & 077)
    fail(MN_ERROR_FILE, "%.300s can be read or changed by others; take that away with chmod 600", path_.c_str());
  const std::string bytes = contents(path_, file.get(), most_bytes(*model_));
  try {
    return decode_memories(*model_, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  } catch (const Failure& failure) {
    fail(failure.error().status, "%.300s %.150s", path_.c_str(), failure.error().message);
  }
}

void PersonalFile::change(const std::function<Memories(const Memories&)>& how) {
  const Descriptor folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) fail_with(path_, "is in a folder that cannot be opened");
  lock(path_, folder.get());
  const std::string bytes = encode_memories(*model_, how(read()));
  std::string temporary = path_ + ".XXXXXX";
  const Descriptor file(::mkstemp(&temporary[0]));  // private to its owner
  if (file.get() < 0) fail_with(path_, "cannot be written");
  try {
    write_all(path_, file.get(), bytes);
    if (::fchmod(file.get(), 0600) != 0 || ::fsync(file.get()) != 0 || ::rename(temporary.c_str(), path_.c_str()) != 0)
      fail_with(path_, "cannot be written");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  ::fsync(folder.get());
}

}  // namespace micronet

#endif
