// The container of a packed file, safetensors: names, offsets and types of its tensors.
#pragma once

#include <string>
#include <map>
#include <vector>

#include "bytes.hpp"

namespace micronet {

struct Part {
  bool is_float;               // F32, else U8
  std::vector<int64_t> shape;  // at most 2 numbers
  uint64_t begin, end;         // counted from the end of the header
  bool taken = false;
};

class Container {
 public:
  explicit Container(Bytes file);  // checks the header; throws Failure

  const std::string& metadata() const { return metadata_; }
  bool has(const std::string& name) const { return parts_.count(name) != 0; }
  // Return the bytes of a tensor, which must have this type and shape. Each tensor may be taken once.
  Bytes take(const std::string& name, bool is_float, const std::vector<int64_t>& shape);
  // Return the number of elements of a 1-D tensor.
  int64_t length(const std::string& name, bool is_float) const;
  // Throw Failure if a tensor was never taken: the format does not allow extra tensors.
  void finish() const;
  Bytes file() const { return file_; }
  // Return whether the file has a checksum (it was checked on opening), and the checksum.
  bool checked() const { return checked_; }
  uint64_t checksum() const { return checksum_; }

 private:
  const Part& find(const std::string& name) const;
  void check_places(uint64_t size) const;
  void check_sum();

  Bytes file_;
  uint64_t data_ = 0;  // where the tensors begin
  std::string metadata_;
  bool checked_ = false;
  uint64_t checksum_ = 0;
  std::map<std::string, Part> parts_;
};

}  // namespace micronet
