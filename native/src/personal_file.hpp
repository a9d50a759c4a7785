// A personal memory as a private file: read with strict checks, changed under a lock, replaced by rename
// (runtime/personal.py).
#pragma once

#include <functional>
#include <string>

#include "personal.hpp"

namespace micronet {

class PersonalFile {
 public:
  // Check the file, if it exists; throws Failure.
  PersonalFile(const Model& model, std::string path);

  const Model& model() const { return *model_; }
  Memories read() const;  // empty if there is no file
  // Read the file again, change its memories and write them, while other processes are locked out.
  void change(const std::function<Memories(const Memories&)>& how);

 private:
  const Model* model_;
  std::string path_;
};

}  // namespace micronet
