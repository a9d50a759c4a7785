// The choice of a kernel set: by name, by MICRONET_KERNELS, or the fastest.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "micronet.h"
#include "packed.hpp"

namespace {

// Sets the variable while it exists; null unsets it.
class Variable {
 public:
  explicit Variable(const char* value) {
    if (const char* old = std::getenv(kName)) before_ = old, was_set_ = true;
    set(value);
  }
  ~Variable() { set(was_set_ ? before_.c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  static constexpr const char* kName = "MICRONET_KERNELS";
  static void set(const char* value) {
    if (value) setenv(kName, value, 1);
    else unsetenv(kName);
  }
  std::string before_;
  bool was_set_ = false;
};

#if defined(__x86_64__)
const std::vector<std::string> kNames = {"scalar", "avx2", "avx512"};
const std::string kChoice = "choose auto, scalar, avx2 or avx512";
#elif defined(__aarch64__)
const std::vector<std::string> kNames = {"scalar", "neon"};
const std::string kChoice = "choose auto, scalar or neon";
#else
const std::vector<std::string> kNames = {"scalar"};
const std::string kChoice = "choose auto or scalar";
#endif

std::vector<mn_kernel_set> sets() {
  std::vector<mn_kernel_set> found(mn_kernel_sets(nullptr, 0));
  CHECK(mn_kernel_sets(found.data(), found.size()) == found.size());
  return found;
}

// Return the kernel set that a model gets, or the error message.
std::string opened(const char* kernels, mn_status* status) {
  static const std::vector<uint8_t> bytes = packed::make({}).bytes();
  mn_model* model = nullptr;
  mn_error error;
  *status = mn_model_open_bytes(bytes.data(), bytes.size(), kernels, &model, &error);
  const std::string found = model ? mn_model_kernels(model) : error.message;
  mn_model_close(model);
  return found;
}

}  // namespace

TEST(kernel_sets_are_listed) {
  const Variable unset(nullptr);
  const auto all = sets();
  std::vector<std::string> names;
  for (const mn_kernel_set& set : all) names.push_back(set.name);
  CHECK(names == kNames);
  CHECK(all[0].built && all[0].runs);
  int chosen = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    CHECK(!all[i].runs || all[i].built);
    chosen += all[i].chosen;
    for (size_t j = i + 1; all[i].chosen && j < all.size(); ++j) CHECK(!all[j].runs);  // the chosen set is the fastest
  }
  CHECK(chosen == 1);
#if defined(MICRONET_SIMDE)
  CHECK(all[2].runs == all[1].runs);  // independent of the processor's other features
#endif
  mn_kernel_set one[2] = {{nullptr, -1, -1, -1}, {nullptr, -1, -1, -1}};
  CHECK(mn_kernel_sets(one, 1) == kNames.size() && one[0].name && !one[1].name);
}

TEST(the_variable_says_what_auto_takes) {
  mn_status status;
  std::string fastest;
  for (const mn_kernel_set& set : sets())
    if (set.runs) fastest = set.name;
  for (const char* nothing : {static_cast<const char*>(nullptr), "", "auto"}) {
    const Variable variable(nothing);
    CHECK(opened("auto", &status) == fastest && status == MN_OK);
  }
  for (const char* name : check::kernels()) {
    const Variable variable(name);
    CHECK(opened("auto", &status) == name && status == MN_OK);
    for (const char* other : check::kernels()) CHECK(opened(other, &status) == other && status == MN_OK);
    for (const mn_kernel_set& set : sets()) CHECK(set.chosen == (std::strcmp(set.name, name) == 0));
  }
}

TEST(the_variable_is_named_where_it_asks_for_what_is_not_there) {
  mn_status status;
  for (const mn_kernel_set& set : sets()) {
    if (set.runs) continue;
    const Variable variable(set.name);
    const std::string sentence = opened("auto", &status);
    CHECK(status == MN_ERROR_KERNELS && sentence.find("MICRONET_KERNELS") != std::string::npos);
    CHECK(opened(set.name, &status).find("MICRONET_KERNELS") == std::string::npos && status == MN_ERROR_KERNELS);
    CHECK(opened("scalar", &status) == "scalar");
  }
  const Variable variable("mmx");
  CHECK(opened("auto", &status) ==
        "there are no kernels 'mmx', which MICRONET_KERNELS asks for; " + kChoice);
  CHECK(status == MN_ERROR_KERNELS);
  CHECK(opened("mmx", &status) == "there are no kernels 'mmx'; " + kChoice);
  CHECK(status == MN_ERROR_ARGUMENT);
  CHECK(opened("scalar", &status) == "scalar");
  for (const mn_kernel_set& set : sets()) CHECK(!set.chosen);
}
