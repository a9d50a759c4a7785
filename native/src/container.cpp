#include "container.hpp"

#include <algorithm>

#include "checksum.hpp"
#include "json.hpp"
#include "sorting.hpp"
#include "status.hpp"

namespace micronet {

namespace {

constexpr uint64_t kLongestHeader = uint64_t{16} << 20;
constexpr size_t kLongestMetadata = size_t{4} << 20;

std::vector<int64_t> read_numbers(Json& json, size_t most) {
  std::vector<int64_t> numbers;
  for (bool more = json.open('['); more; more = json.next(']')) {
    if (numbers.size() == most) json.damaged("too many numbers");
    numbers.push_back(json.integer());
  }
  return numbers;
}

Part read_part(Json& json) {
  Part part{};
  bool dtype = false, shape = false, offsets = false;
  for (bool more = json.open('{'); more; more = json.next('}')) {
    const std::string key = json.key();
    if (key == "dtype" && !dtype) {
      dtype = true;
      const std::string type = json.string();
      if (type != "F32" && type != "U8") json.damaged("a dtype that is neither F32 nor U8");
      part.is_float = type == "F32";
    } else if (key == "shape" && !shape) {
      shape = true;
      part.shape = read_numbers(json, 2);
    } else if (key == "data_offsets" && !offsets) {
      offsets = true;
      const auto places = read_numbers(json, 2);
      if (places.size() != 2 || places[0] > places[1]) json.damaged("data_offsets are not two numbers in order");
      part.begin = uint64_t(places[0]);
      part.end = uint64_t(places[1]);
    } else {
      json.damaged("a tensor is described by one dtype, one shape and one data_offsets");
    }
  }
  if (!dtype || !shape || !offsets)
    json.damaged("a tensor is described by one dtype, one shape and one data_offsets");
  uint64_t count = part.is_float ? 4 : 1;
  for (int64_t n : part.shape)
    if (__builtin_mul_overflow(count, uint64_t(n), &count)) json.damaged("a shape too large for any file");
  if (count != part.end - part.begin) json.damaged("a tensor's shape does not fill its bytes");
  return part;
}

}  // namespace

Container::Container(Bytes file) : file_(file) {
  if (file.size < 8)
    fail(MN_ERROR_FORMAT, "the file has %zu bytes, too few for a header; give a packed model", file.size);
  const auto length = read_at<uint64_t>(file.data);
  if (length > kLongestHeader || length > file.size - 8)
    fail(MN_ERROR_FORMAT,
         "the header claims %llu bytes of a file of %zu; it is truncated or not a packed model",
         static_cast<unsigned long long>(length), file.size);
  data_ = 8 + length;
  const Bytes text = file.part(8, data_);
  if (length == 0 || text.data[0] != '{')
    fail(MN_ERROR_FORMAT, "the header does not begin with a brace; give a packed model");
  Json json(text, "header");
  bool described = false;
  for (bool more = json.open('{'); more; more = json.next('}')) {
    std::string name = json.key();
    if (name == "__metadata__") {
      if (described) json.damaged("two __metadata__");
      described = true;
      size_t entries = 0;
      for (bool inside = json.open('{'); inside; inside = json.next('}')) {
        if (json.key() != "micronet" || entries++) json.damaged("metadata besides 'micronet'");
        metadata_ = json.string();
      }
      if (!entries) json.damaged("no metadata 'micronet': another kind of safetensors file");
    } else {
      Part part = read_part(json);
      if (!parts_.emplace(std::move(name), std::move(part)).second) json.damaged("a name that occurs twice");
    }
  }
  json.end();
  if (!described)
    fail(MN_ERROR_FORMAT, "the file has no metadata 'micronet': it is another kind of safetensors file");
  if (metadata_.size() > kLongestMetadata)
    fail(MN_ERROR_FORMAT, "the metadata have %zu bytes, more than the %zu that are allowed; make the card shorter",
         metadata_.size(), kLongestMetadata);
  check_places(file.size - data_);
  check_sum();
}

// The last tensor may be the checksum of all bytes before it. Files of version 0.1 have none.
void Container::check_sum() {
  const auto found = parts_.find("checksum");
  if (found == parts_.end()) return;
  const Part& part = found->second;
  if (part.is_float || part.shape != std::vector<int64_t>{8} || part.end != file_.size - data_)
    fail(MN_ERROR_FORMAT, "the tensor checksum is not the file's last 8 bytes; pack the model again");
  checksum_ = micronet::checksum(file_.part(0, file_.size - 8));
  if (checksum_ != read_at<uint64_t>(file_.data + file_.size - 8))
    fail(MN_ERROR_FORMAT, "its bytes do not have the checksum that was written with them; it is damaged: restore it or pack again");
  checked_ = true;
  parts_.erase(found);
}

// Check that the tensors follow each other without gaps and end at the end of the file.
void Container::check_places(uint64_t size) const {
  std::vector<const Part*> ordered;
  ordered.reserve(parts_.size());
  for (const auto& entry : parts_) ordered.push_back(&entry.second);
  sort_all(ordered.begin(), ordered.end(), [](const Part* a, const Part* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  uint64_t at = 0;
  for (const Part* part : ordered) {
    if (part->begin != at)
      fail(MN_ERROR_FORMAT, "a tensor begins at byte %llu, but the one before it ends at %llu; pack the model again",
           static_cast<unsigned long long>(part->begin), static_cast<unsigned long long>(at));
    at = part->end;
  }
  if (at != size)
    fail(MN_ERROR_FORMAT, "the tensors take %llu bytes, but the file has %llu for them; it is truncated or damaged",
         static_cast<unsigned long long>(at), static_cast<unsigned long long>(size));
}

const Part& Container::find(const std::string& name) const {
  const auto found = parts_.find(name);
  if (found == parts_.end())
    fail(MN_ERROR_FORMAT, "the file lacks the tensor %.100s; pack the model again", name.c_str());
  return found->second;
}

Bytes Container::take(const std::string& name, bool is_float, const std::vector<int64_t>& shape) {
  const Part& part = find(name);
  if (part.is_float != is_float || part.shape != shape)
    fail(MN_ERROR_FORMAT, "the tensor %.100s does not have the type and shape given in the metadata; pack the model again",
         name.c_str());
  parts_.at(name).taken = true;
  return file_.part(size_t(data_ + part.begin), size_t(data_ + part.end));
}

int64_t Container::length(const std::string& name, bool is_float) const {
  const Part& part = find(name);
  if (part.is_float != is_float || part.shape.size() != 1)
    fail(MN_ERROR_FORMAT, "the tensor %.100s is not a list of %s; pack the model again", name.c_str(),
         is_float ? "floats" : "bytes");
  return part.shape[0];
}

void Container::finish() const {
  for (const auto& entry : parts_)
    if (!entry.second.taken)
      fail(MN_ERROR_FORMAT, "the tensor %.100s is not part of a packed model; pack it again",
           entry.first.c_str());
}

}  // namespace micronet
