// Runs all tests, or those whose names contain the argument.
#include <cstring>

#include "check.hpp"
#include "micronet.h"

namespace {

bool asked_for_kernels = false;

std::vector<const char*> kernels_that_run() {
  std::vector<mn_kernel_set> sets(mn_kernel_sets(nullptr, 0));
  mn_kernel_sets(sets.data(), sets.size());
  std::vector<const char*> names;
  for (const mn_kernel_set& set : sets) {
    if (set.runs) names.push_back(set.name);
    else std::printf("not tested: %s kernels, %s\n", set.name, set.built ? "which cannot run here" : "not built");
  }
  return names;
}

}  // namespace

namespace check {

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

int& failures() {
  static int count = 0;
  return count;
}

const std::vector<const char*>& kernels() {
  static const std::vector<const char*> names = kernels_that_run();
  asked_for_kernels = true;
  return names;
}

}  // namespace check

int main(int count, char** arguments) {
  int run = 0;
  for (const check::Test& test : check::tests()) {
    if (count > 1 && !std::strstr(test.name, arguments[1])) continue;
    const int before = check::failures();
    asked_for_kernels = false;
    test.run();
    ++run;
    std::printf("%s %s", check::failures() == before ? "ok    " : "FAILED", test.name);
    const char* separator = ": ";
    if (asked_for_kernels)
      for (const char* name : check::kernels()) std::printf("%s%s", separator, name), separator = ", ";
    std::printf("\n");
    std::fflush(stdout);
  }
  std::printf("%d tests, %d failed checks\n", run, check::failures());
  return check::failures() || !run ? 1 : 0;
}
