// Truncated, damaged and lying files: an error or a working model, never undefined behaviour (run under sanitizers).
#include <cmath>
#include <memory>

#include "check.hpp"
#include "micronet.h"
#include "packed.hpp"
#include "use_model.hpp"

namespace {

mn_status open_and_use(const std::vector<uint8_t>& bytes, mn_error* error = nullptr) {
  // Exactly as large as the file, so that AddressSanitizer detects reads past the end.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  mn_status status = MN_OK;
  for (const char* kernels : check::kernels()) {
    mn_model* model = nullptr;
    status = mn_model_open_bytes(copy.get(), bytes.size(), kernels, &model, error);
    CHECK((status == MN_OK) == (model != nullptr));
    if (!model) break;  // all kernel sets refuse the same files
    use_model(model);
    mn_model_close(model);
  }
  return status;
}

void refused(const packed::File& file, const char* what) {
  mn_error error;
  const mn_status status = open_and_use(file.bytes(), &error);
  if (status != MN_ERROR_FORMAT) std::fprintf(stderr, "not refused: %s\n", what);
  CHECK(status == MN_ERROR_FORMAT);
  CHECK(std::strlen(error.message) > 20 && !std::strchr(error.message, '\n'));
}

void set_float(packed::Tensor& tensor, size_t index, float value) { std::memcpy(tensor.bytes.data() + 4 * index, &value, 4); }

packed::File changed(const packed::Options& options, const std::string& from, const std::string& to) {
  packed::File file = packed::make(options);
  const size_t at = file.metadata.find(from);
  CHECK(at != std::string::npos);
  file.metadata.replace(at, from.size(), to);
  return file;
}

}  // namespace

TEST(truncations_at_every_length_are_refused) {
  packed::Options tiny;
  tiny.layers = 1;
  for (int bits : {9, 32}) {
    tiny.bits = bits;
    tiny.activation_bits = bits == 9 ? 9 : 0;
    tiny.ngrams = bits == 9;
    const auto whole = packed::make(tiny).bytes();
    CHECK(open_and_use(whole) == MN_OK);
    for (size_t cut = 0; cut < whole.size(); ++cut)
      CHECK(open_and_use({whole.begin(), whole.begin() + long(cut)}) == MN_ERROR_FORMAT);
    auto longer = whole;
    longer.push_back(0);
    CHECK(open_and_use(longer) == MN_ERROR_FORMAT);
  }
}

TEST(flipped_bits_do_no_harm) {
  packed::Options tiny;
  tiny.layers = 1;
  tiny.heads = 1;
  for (bool ngrams : {false, true}) {
    tiny.ngrams = ngrams;
    const auto whole = packed::make(tiny).bytes();
    for (size_t i = 0; i < whole.size(); ++i) {
      auto spoiled = whole;
      spoiled[i] ^= uint8_t(1 << (i * 5 + i / 8) % 8);
      open_and_use(spoiled);
    }
  }
}

TEST(lies_of_the_metadata_are_refused) {
  const packed::Options o;
  const char* lies[][2] = {
      {"\"format\":1", "\"format\":2"},
      {"\"format\":1,", ""},
      {"\"format\":1", "\"format\":1,\"format\":1"},
      {"\"format\":1", "\"more\":1,\"format\":1"},
      {"\"vocabulary\":24", "\"vocabulary\":25"},
      {"\"vocabulary\":24", "\"vocabulary\":2147483647"},
      {"\"vocabulary\":24", "\"vocabulary\":99999999999999999999"},
      {"\"vocabulary\":24", "\"vocabulary\":-24"},
      {"\"vocabulary\":24", "\"vocabulary\":24.5"},
      {"\"cutoffs\":[8,14]", "\"cutoffs\":[14,8]"},
      {"\"cutoffs\":[8,14]", "\"cutoffs\":[8]"},
      {"\"cutoffs\":[8,14]", "\"cutoffs\":[8,24]"},
      {"\"width\":6", "\"width\":7"},
      {"\"width\":6", "\"width\":0"},
      {"\"layers\":2", "\"layers\":3"},
      {"\"layers\":2", "\"layers\":1"},
      {"\"layers\":2", "\"layers\":2147483647"},
      {"\"heads\":2", "\"heads\":2147483647"},
      {"\"context\":4", "\"context\":2147483647"},
      {"\"cache\":{\"size\":5,", "\"cache\":{\"size\":0,"},
      {"\"ramp\":2", "\"ramp\":6"},
      {"\"ramp\":2", "\"ramp\":-1"},
      {",\"ramp\":2", ""},
      {"\"cache\":{\"size\":5,", "\"cache\":{\"size\":99999999,"},
      {"\"cache\":{\"size\":5,\"ramp\":2}", "\"cache\":null"},
      {"\"tokenizer\":\"wikitext\"", "\"tokenizer\":\"bpe\""},
      {"\"activation_bits\":9", "\"activation_bits\":17"},
      {"\"activation_bits\":9", "\"activation_bits\":null"},
      {"\"activation_bits\":9", "\"activation_bits\":16"},
      {"\"bits\":9", "\"bits\":1"},
      {"\"bits\":9", "\"bits\":8"},
      {"\"bits\":9", "\"bits\":32"},
      {"\"nonzeros\":", "\"nonzeros\":1"},
      {"\"card\":{", "\"card\":[{"},
      {"\"card\":{\"name\":", "\"card\":{\"name\":NaN,\"other\":"},
      {"\"shape\":[8,6]", "\"shape\":[6,8]"},
      {"\"shape\":[8,6]", "\"shape\":[48]"},
      {"\"shape\":[8,6]", "\"shape\":[4611686018427387904,6]"},
  };
  for (const auto& lie : lies) refused(changed(o, lie[0], lie[1]), lie[1]);
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "[";
  refused(changed(o, "\"name\":\"tiny\"", "\"name\":" + deep), "a deep card");
  packed::File broken = packed::make(o);
  broken.metadata.back() = '\xff';
  refused(broken, "metadata that are not UTF-8");
}

TEST(lies_of_the_tensors_are_refused) {
  const packed::Options o;
  auto with = [&](auto spoil, const char* what) {
    packed::File file = packed::make(o);
    spoil(file);
    refused(file, what);
  };
  const std::string table = "embedding.tables.0";
  for (float scale : {NAN, INFINITY, -0.5f, 1.0000001f, 1e-38f, 1e38f})
    with([&](packed::File& f) { set_float(f.tensor(table + ".steps"), 0, scale); }, "a scale");
  for (float scale : {NAN, -0.5f, 1.0000001f})
    with([&](packed::File& f) { set_float(f.tensor("activations.qkv"), 3, scale); }, "an activation's scale");
  with([&](packed::File& f) { set_float(f.tensor("activations.qkv"), 0, -1.0f); }, "a negative range");
  with([&](packed::File& f) { set_float(f.tensor("softmax.biases.1"), 2, NAN); }, "a bias that is not finite");
  for (float theta : {0.0f, -1.0f, NAN, INFINITY})
    with([&](packed::File& f) { set_float(f.tensor("cache.theta"), 0, theta); }, "theta");
  for (float lam : {0.0f, 1.0f, -1.0f, NAN})
    with([&](packed::File& f) { set_float(f.tensor("cache.lam"), 0, lam); }, "lam");
  with([&](packed::File& f) { f.tensor(table + ".mask").bytes[0] ^= 1; }, "a mask with another number of bits");
  with([&](packed::File& f) {
    auto& mask = f.tensor("embedding.tables.2.mask").bytes;  // 10 elements: bits 10 to 15 are past the end
    mask[1] |= 0x80;
  }, "bits behind the mask");
  with([&](packed::File& f) { f.tensor("embedding.tables.2.integers").bytes.back() |= 0x80; },  // 4 integers of 9 bits
       "bits behind the integers");
  with([&](packed::File& f) { auto& b = f.tensor(table + ".integers").bytes; b[0] = 0, b[1] &= 0xFE; }, "a zero among non-zeros");
  with([&](packed::File& f) { auto& b = f.tensor("softmax.tail_weight.integers").bytes; b[0] = 0, b[1] = uint8_t((b[1] & 0xFE) | 1); },
       "the one integer that is not allowed");
  with([&](packed::File& f) { f.tensors.push_back(f.tensors.front()); }, "a name that comes twice");
  with([&](packed::File& f) { f.tensors.push_back({"more", false, {0}, {}}); }, "a tensor too many");
  with([&](packed::File& f) { f.tensors.pop_back(); }, "a tensor too few");
  with([&](packed::File& f) { f.tensor("vocabulary").name = "words"; }, "no vocabulary");
  with([&](packed::File& f) { f.tensor("vocabulary").bytes.back() = 'x'; }, "a last word without an end");
  with([&](packed::File& f) { f.tensor("vocabulary").bytes[1] = 0x41; }, "a word that is not UTF-8");
  with([&](packed::File& f) { auto& b = f.tensor("vocabulary").bytes; b[4] = 'w', b[5] = '2'; }, "words");
  with([&](packed::File& f) { auto& t = f.tensor("activations.hidden"); t.name = "activations.elsewhere"; }, "a place that is none");
  with([&](packed::File& f) { f.tensor("cache.theta").is_float = false, f.tensor("cache.theta").shape = {4}; }, "a type");
}

TEST(lies_of_the_header_are_refused) {
  const auto whole = packed::make({}).bytes();
  auto with = [&](const std::string& from, const std::string& to) {
    auto spoiled = whole;
    const std::string text(spoiled.begin(), spoiled.end());
    const size_t at = text.find(from);
    CHECK(at != std::string::npos && from.size() == to.size());
    std::copy(to.begin(), to.end(), spoiled.begin() + long(at));
    CHECK(open_and_use(spoiled) == MN_ERROR_FORMAT);
  };
  with("\"dtype\":\"F32\"", "\"dtype\":\"F16\"");
  with("\"dtype\":\"F32\"", "\"dtype\":\"U8\" ");
  with("\"data_offsets\":[0,", "\"data_offsets\":[1,");
  with("\"data_offsets\":[0,", "\"data_offsets\":[9,");
  with("\"data_offsets\":[0,", "\"DATA_offsets\":[0,");
  with("__metadata__", "__Metadata__");
  with("{\"micronet\":", "{\"macronet\":");
  with("} ", "}x");
  for (uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{100000001}, UINT64_MAX, uint64_t{1} << 63, uint64_t(whole.size() - 7)}) {
    auto spoiled = whole;
    std::memcpy(spoiled.data(), &length, 8);
    CHECK(open_and_use(spoiled) == MN_ERROR_FORMAT);
  }
}

TEST(small_files_cannot_ask_for_much_memory) {
  // A zero takes one bit, so a tiny file can describe large tensors; there is a limit on what it may claim.
  packed::Options wide;
  wide.layers = 1;
  wide.ffn_width = 400000;  // two matrices of 2.4 million zeros: 300 kB of mask each, 38 MB as panels of floats
  wide.bits = 32;
  wide.activation_bits = 0;
  wide.width = 6;
  mn_error error;
  const mn_status status = open_and_use(packed::make(wide).bytes(), &error);
  CHECK(status == MN_OK || status == MN_ERROR_FORMAT);
  packed::Options heads;
  heads.layers = 1;
  heads.heads = 60000;
  heads.value_width = 1;
  heads.key_width = 1;
  heads.width = 1;
  heads.embedding_widths = {1, 3, 1};
  heads.context = 4000;
  const auto bytes = packed::make(heads).bytes();
  mn_model* model = nullptr;
  CHECK(mn_model_open_bytes(bytes.data(), bytes.size(), "auto", &model, &error) == MN_OK);
  mn_session* session = nullptr;
  CHECK(mn_session_start(model, &session, &error) == MN_OK);
  mn_status fed = MN_OK;
  for (int i = 0; i < 200 && fed == MN_OK; ++i) fed = mn_session_feed(session, 1, &error);
  CHECK(fed == MN_ERROR_MEMORY && std::strstr(error.message, "limit"));
  mn_session_free(session);
  mn_model_close(model);
}

// Each number alone is allowed; their product is more than any file can have, or than 64 bits can hold.
TEST(heads_and_widths_whose_product_is_too_large_are_refused) {
  for (const char* largest : {"2147483647", "1073741824"}) {
    packed::File file = packed::make({});
    for (const char* key : {"\"heads\":", "\"key_width\":"}) {
      const size_t at = file.metadata.find(key);
      CHECK(at != std::string::npos);
      file.metadata.replace(at + std::strlen(key), 1, largest);
    }
    refused(file, "heads and widths");
  }
}
