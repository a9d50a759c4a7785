// A minimal test framework.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace check {

struct Test {
  const char* name;
  std::function<void()> run;
};

std::vector<Test>& tests();
int& failures();

// Return the names of the kernel sets that run here, the slowest first; the test's output line shows them too.
const std::vector<const char*>& kernels();

struct Register {
  Register(const char* name, std::function<void()> run) { tests().push_back({name, std::move(run)}); }
};

}  // namespace check

#define TEST(name)                                               \
  static void name();                                            \
  static const check::Register register_##name(#name, name);     \
  static void name()

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      ++check::failures();                                                         \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                              \
  } while (0)
