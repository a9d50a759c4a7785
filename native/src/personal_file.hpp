// A person's memory as a private file: read strictly, changed under a lock, written by rename (runtime/personal.py).
#pragma once

#include <functional>
#include <string>

#include "personal.hpp"

namespace micronet {

class PersonalFile {
 public:
  // Checks what is there; a file need not be. Throws Failure.
  PersonalFile(const Model& model, std::string path);

  const Model& model() const { return *model_; }
  Memories read() const;  // nothing where there is no file
  // Changes the newest memories and writes them, while no other process does.
  void change(const std::function<Memories(const Memories&)>& how);

 private:
  const Model* model_;
  std::string path_;
};

}  // namespace micronet
