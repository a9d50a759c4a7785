// Runs all tests, or those whose names hold the argument.
#include <cstring>

#include "check.hpp"

namespace check {

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

int& failures() {
  static int count = 0;
  return count;
}

}  // namespace check

int main(int count, char** arguments) {
  int run = 0;
  for (const check::Test& test : check::tests()) {
    if (count > 1 && !std::strstr(test.name, arguments[1])) continue;
    const int before = check::failures();
    test.run();
    ++run;
    std::printf("%s %s\n", check::failures() == before ? "ok    " : "FAILED", test.name);
  }
  std::printf("%d tests, %d failed checks\n", run, check::failures());
  return check::failures() || !run ? 1 : 0;
}
