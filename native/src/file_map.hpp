// A file's bytes, read into memory. The file is not mapped: if a mapped file were truncated, the process would crash.
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
  // Release the memory of a part. Its bytes are lost.
  void release(Bytes part) const;

 private:
  Bytes bytes_;
};

}  // namespace micronet
