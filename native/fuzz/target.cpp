// What fuzzers call: opens bytes as a packed file and, if they are one, asks it everything.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "micronet.h"
#include "use_model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Exactly as large as the input, so that AddressSanitizer sees reads past the end.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[size]);
  if (size) std::memcpy(copy.get(), data, size);
  mn_model* model = nullptr;
  mn_error error;
  if (mn_model_open_bytes(copy.get(), size, "auto", &model, &error) == MN_OK) use_model(model);
  mn_model_close(model);
  return 0;
}
