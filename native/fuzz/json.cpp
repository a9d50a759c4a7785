// What fuzzers call: reads bytes as JSON. What was once accepted is accepted again with white space around it, and
// not with a letter behind it.
#include <cstddef>
#include <cstdint>
#include <string>

#include "json.hpp"
#include "status.hpp"

namespace {

bool accepts(const uint8_t* data, size_t size) {
  try {
    micronet::Json json({data, size}, "input");
    json.skip();
    json.end();
    return true;
  } catch (const micronet::Failure&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!accepts(data, size)) return 0;
  std::string text(reinterpret_cast<const char*>(data), size);
  const std::string spaced = " \t\r\n" + text + "\n ";
  if (!accepts(reinterpret_cast<const uint8_t*>(spaced.data()), spaced.size())) __builtin_trap();
  text += 'x';
  if (accepts(reinterpret_cast<const uint8_t*>(text.data()), text.size())) __builtin_trap();
  return 0;
}
