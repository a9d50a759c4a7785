// A file's bytes, read into memory: a mapped file that someone truncates would end the process.
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
  // Give the memory of a part back. Its bytes are lost.
  void release(Bytes part) const;

 private:
  Bytes bytes_;
};

}  // namespace micronet
