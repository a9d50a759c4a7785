// A file's bytes, mapped into memory (read, where the system has no mmap).
#pragma once

#include "bytes.hpp"

namespace micronet {

class FileMap {
 public:
  explicit FileMap(const char* path);  // throws Failure
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  Bytes bytes() const { return bytes_; }
  // Pages that are not needed any more need no memory: they come back from the file if they are read.
  void release(Bytes part) const;

 private:
  Bytes bytes_;
};

}  // namespace micronet
