// What fuzzers call: reads bytes as the metadata of a packed file.
#include <cstddef>
#include <cstdint>
#include <string>

#include "config.hpp"
#include "status.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    micronet::read_config(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const micronet::Failure&) {
  }
  return 0;
}
