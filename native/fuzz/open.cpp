// The fuzz target: opens bytes as a packed file and, if that succeeds, calls every function on it.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "micronet.h"
#include "use_model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Exactly as large as the input, so that AddressSanitizer detects reads past the end.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[size]);
  if (size) std::memcpy(copy.get(), data, size);
  mn_model* model = nullptr;
  mn_error error;
  if (mn_model_open_bytes(copy.get(), size, "auto", &model, &error) == MN_OK) use_model(model);
  mn_model_close(model);
  return 0;
}

#ifdef __clang__
#include "mutator.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t room) __attribute__((weak));

// libFuzzer's own mutations hardly ever leave a header with the right length.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t room, unsigned int seed) {
  if (seed % 4 == 0 && LLVMFuzzerMutate) return LLVMFuzzerMutate(data, size, room);
  fuzz::Bytes bytes(data, data + size);
  fuzz::Mutator(seed).mutate(bytes);
  const size_t count = std::min(bytes.size(), room);
  if (count) std::memcpy(data, bytes.data(), count);
  return count;
}
#endif
