// The container of a packed file, safetensors: names, offsets and types of its tensors.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "bytes.hpp"

namespace micronet {

struct Part {
  bool is_float;               // F32, else U8
  std::vector<int64_t> shape;  // at most 2 numbers
  uint64_t begin, end;         // behind the header
  bool taken = false;
};

class Container {
 public:
  explicit Container(Bytes file);  // checks the header; throws Failure

  const std::string& metadata() const { return metadata_; }
  bool has(const std::string& name) const { return parts_.count(name) != 0; }
  // The bytes of a tensor that must be there with this type and shape; each is taken once.
  Bytes take(const std::string& name, bool is_float, const std::vector<int64_t>& shape);
  // The number of elements of a tensor of one dimension.
  int64_t length(const std::string& name, bool is_float) const;
  // Throws Failure if a tensor was not taken: the file must not have it.
  void finish() const;
  Bytes file() const { return file_; }

 private:
  const Part& find(const std::string& name) const;
  void check_places(uint64_t size) const;

  Bytes file_;
  uint64_t data_ = 0;  // where the tensors begin
  std::string metadata_;
  std::unordered_map<std::string, Part> parts_;
};

}  // namespace micronet
